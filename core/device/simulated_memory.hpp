// The memory of the simulated device: capacity, addresses, segments, physical memory and mappings,
// by the rules seen on real drivers. No lock, no clock, no streams; SimulatedDevice adds those.
#pragma once

#include <map>
#include <optional>

#include "core/device/device.hpp"
#include "core/device/segment_space.hpp"
#include "core/device/simulated_pages.hpp"
#include "core/device/simulated_space.hpp"

namespace fragshim {

/// Real memory behind the simulated, for those who want to read and write it. Called with the
/// device's lock held; a physical address is an offset into whatever holds the bytes.
class Backing {
 public:
  virtual ~Backing() = default;
  /// Shows `size` bytes of physical memory from `physical` on at `address`. False: cannot.
  virtual bool map(Address address, Bytes size, Address physical) = 0;
  virtual void unmap(Address address, Bytes size) = 0;
  /// The physical memory is free: its bytes need not be kept.
  virtual void discard(Address physical, Bytes size) = 0;
};

struct MemoryOptions {
  Bytes capacity = unlimited;       // of physical memory
  Bytes granularity = 2 * MiB;      // of virtual memory; 0: the device has none
  bool charge_pages = false;        // segments cost whole 2 MiB pages, not just the bytes asked for
  Address base = Address{1} << 44;  // where addresses begin
  Bytes address_space = Bytes{1} << 45;  // how many there are: a quarter for segments
  Backing* backing = nullptr;            // not owned
};

/// What backs an address. Two addresses share a byte exactly if they have the same `physical`.
struct Location {
  std::uint64_t handle = 0;  // of the Physical; 0 for a plain segment
  Bytes offset = 0;          // within that physical memory, or within the segment
  Address physical = 0;      // a number for the byte, unique on the device
  Bytes size = 0;            // how many bytes from here on are contiguous
};

class SimulatedMemory {
 public:
  /// A segment as the device gave it.
  struct Segment {
    Address address = 0;
    Bytes size = 0;
  };

  explicit SimulatedMemory(const MemoryOptions& options);

  // The memory calls of Device, with the same meaning.
  Status allocate_segment(Bytes size, Address* out);
  Status release_segment(Address address, Bytes size);
  Status reserve(Bytes size, Bytes alignment, Address* out);
  Status unreserve(Address address, Bytes size);
  Status create(Bytes size, Physical* out);
  Status destroy(Physical memory);
  Status map(Address address, Bytes size, Physical memory);
  Status unmap(Address address, Bytes size);

  std::optional<Location> locate(Address address) const;
  std::optional<Segment> segment_of(Address address) const;
  /// The reservation an address lies in.
  std::optional<Segment> reservation_of(Address address) const;
  /// The size of a physical handle; 0 if there is none.
  Bytes physical_size(Physical memory) const;
  /// How many mappings lie in a range.
  std::size_t mappings_in(Address address, Bytes size) const;

  const MemoryOptions& options() const { return options_; }
  Bytes used() const { return used_; }
  std::size_t segments() const { return segments_.size(); }
  std::size_t physicals() const { return physicals_.size(); }
  std::size_t mappings() const { return mappings_.size(); }

 private:
  struct SegmentState {
    Bytes size = 0;
    Address physical = 0;
  };
  struct PhysicalState {
    Bytes size = 0;
    Address physical = 0;
    std::uint64_t mappings = 0;
    bool held = true;  // by its creator
  };
  struct Mapping {
    Bytes size = 0;
    std::uint64_t handle = 0;
  };

  bool fits(Bytes size) const { return size <= options_.capacity - used_; }
  std::optional<Address> allocate_small(Bytes size);
  std::optional<Address> allocate_large(Bytes size);
  void release_small(Address address, Bytes size);
  std::optional<Address> take_backed(Bytes size, Address* physical);
  void give_backed(Address address, Bytes size, Address physical);
  void drop_if_unused(std::map<std::uint64_t, PhysicalState>::iterator memory);
  bool reserved(Address address, Bytes size) const;
  bool mapped(Address address, Bytes size) const;

  MemoryOptions options_;
  Bytes used_ = 0;
  std::uint64_t next_handle_ = 1;
  SegmentSpace segment_space_;
  SharedPages shared_pages_;
  AddressSpace reservation_space_;
  AddressSpace physical_space_;
  std::map<Address, SegmentState> segments_;
  std::map<Address, Address> pages_;  // shared by small segments: address → physical
  std::map<Address, Bytes> reservations_;
  std::map<std::uint64_t, PhysicalState> physicals_;
  std::map<Address, Mapping> mappings_;
};

}  // namespace fragshim
