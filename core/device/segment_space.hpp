// Where the driver puts segments, so that a replay breaks ties between equal blocks as PyTorch's
// allocator does on a real card: its best fit takes the lowest address.
//
// Read off an H200 (driver 580): addresses come in regions of whole 32 MiB, new ones below the old
// ones. A request goes to the newest region with a free piece long enough, at its lowest one; else
// it starts a new region of its own. A region that is all free vanishes, and its addresses serve
// again only where 32 MiB more are free than the new region needs (the driver asks the system for
// that much to align it).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "core/device/simulated_space.hpp"

namespace fragshim {

class SegmentSpace {
 public:
  /// Segments get addresses from [start, start + size), from its end downwards. The driver's own
  /// use of memory leaves free pieces above the first region; they are there from the start.
  SegmentSpace(Address start, Bytes size);

  /// Addresses for a segment of `size` bytes, a multiple of 2 MiB; nothing where there are none.
  std::optional<Address> take(Bytes size);
  /// Gives back what `take` gave.
  void give(Address address, Bytes size);

 private:
  struct Region {
    Bytes size = 0;
    std::uint64_t born = 0;
    bool permanent = false;         // the driver's own
    std::map<Address, Bytes> free;  // pieces, never touching one another
  };
  using Regions = std::map<Address, Region>;

  Regions::iterator newest_with(Bytes size);
  Regions::iterator add(Address base, Bytes size);
  void index(const Region& region, Address base);
  void unindex(const Region& region);

  Regions regions_;
  AddressSpace gaps_;
  std::uint64_t births_ = 0;
  /// By the power of two of their longest free piece: birth → base.
  std::array<std::map<std::uint64_t, Address>, 64> by_power_;
};

}  // namespace fragshim
