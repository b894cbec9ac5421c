// Where the CUDA driver puts segments. An allocator that breaks ties by address, as PyTorch's does,
// can only be followed exactly if the addresses come in the driver's order.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/device/forwarding.hpp"

namespace fragshim {

/// The driver's choice of addresses, as seen on an H200 (driver 580) over thousands of cuMemAlloc
/// and cuMemFree of 2 MiB and more, without exception:
/// - addresses are reserved in areas of whole 32 MiB, from the top down, each in the highest gap
///   that is larger than the area; an area goes back when nothing is left in it;
/// - a segment goes to the newest area that has room, there to the smallest hole that is large
///   enough, and of that to its low end; only where no area has room is a new one reserved;
/// - a fresh context has two areas of its own with room left in them, 2 MiB and 24 MiB.
class DriverLayout {
 public:
  DriverLayout();

  /// The address of a segment of `size` bytes; nothing where no addresses are left.
  std::optional<Address> place(Bytes size);
  /// Takes a segment away that was placed.
  void remove(Address address);

 private:
  struct Area {
    Address start = 0;
    Bytes size = 0;     // 0: of the context itself, never given back
    Bytes largest = 0;  // the largest hole
    std::map<Address, Bytes> holes;
  };
  using Areas = std::list<Area>;  // the newest first
  struct Segment {
    Bytes size;
    Areas::iterator area;
  };

  void add_context_area(Address address, Bytes room);
  std::optional<Address> reserve(Bytes size);
  void unreserve(Address start, Bytes size);
  Address place_in(Areas::iterator area, Bytes size);

  Areas areas_;
  std::map<Address, Bytes> gaps_;  // address space that no area has: start → size
  std::unordered_map<Address, Segment> segments_;
};

/// Gives the segments of another device the addresses that the driver would have given them.
/// Virtual memory is passed on as it is. For one thread at a time.
class DriverLayoutDevice final : public ForwardingDevice {
 public:
  /// `inner` outlives this device.
  explicit DriverLayoutDevice(Device& inner) : ForwardingDevice(inner) {}

  Status allocate_segment(Bytes size, Address* out) noexcept override;
  Status release_segment(Address address, Bytes size) noexcept override;

 private:
  DriverLayout layout_;
  std::unordered_map<Address, Address> inner_address_;  // by the address given out
};

}  // namespace fragshim
