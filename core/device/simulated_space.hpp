// Address space in which the lowest free range that fits is always taken, so that a simulated run
// gives the same addresses every time.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "core/types.hpp"

namespace fragshim {

class AddressSpace {
 public:
  AddressSpace() = default;
  /// All of [start, start + size) is free.
  AddressSpace(Address start, Bytes size) { give(start, size); }

  /// Takes `size` bytes at the lowest free address that is a multiple of `alignment` (a power of
  /// two). Nothing where no free range is long enough.
  std::optional<Address> take(Bytes size, Bytes alignment);
  /// Takes the beginning of the shortest free range that is long enough; wherever it lies.
  std::optional<Address> take_tightest(Bytes size);
  /// Takes the uppermost `size` bytes of the highest free range that has `spare` bytes more.
  std::optional<Address> take_highest(Bytes size, Bytes spare);
  /// Takes exactly [start, start + size), if all of it is free.
  bool take_at(Address start, Bytes size);
  /// Makes a range free; it must not overlap what is free already.
  void give(Address start, Bytes size);

  /// The free ranges: start → size, in address order, never touching one another.
  const std::map<Address, Bytes>& ranges() const { return ranges_; }

 private:
  void insert(Address start, Bytes size);
  void erase(std::map<Address, Bytes>::iterator range);

  std::map<Address, Bytes> ranges_;
  std::map<Bytes, std::set<Address>> by_size_;  // the same ranges
};

}  // namespace fragshim
