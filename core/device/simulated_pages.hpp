// Pages of 2 MiB that small segments share: each page is halved, and halved again, until a part is
// as large as a segment needs, and freed parts find their other halves again.
#pragma once

#include <array>
#include <optional>
#include <set>

#include "core/types.hpp"

namespace fragshim {

class SharedPages {
 public:
  static constexpr Bytes page_size = 2 * MiB;
  static constexpr Bytes smallest = 512;

  /// Takes a part for `size` bytes (at most a page), at the lowest address among the shortest parts
  /// that are long enough; aligned to the power of two above `size`. Nothing: add a page first.
  std::optional<Address> take(Bytes size);
  /// Adds a free page, at a multiple of its size.
  void add(Address page) { free_.back().insert(page); }
  /// Gives back what `take` gave for that size. True: its page is all free now, and is no longer
  /// here.
  bool give(Address address, Bytes size);

 private:
  static constexpr std::size_t orders = 13;  // 512 bytes to 2 MiB
  static std::size_t order_of(Bytes size);

  std::array<std::set<Address>, orders> free_;
};

}  // namespace fragshim
