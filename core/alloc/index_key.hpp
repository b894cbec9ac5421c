// Sizes and addresses in one word, in whose order free blocks are found.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>

#include "core/types.hpp"

namespace fragshim {

/// A size and an address, ordered by size, then address. With size 0: an address alone.
///
/// Blocks do not overlap, so two of 2^n bytes or more differ in their addresses above the lowest n
/// bits. A key holds n + 1 (0 for size 0), the n bits of the size below its highest, and of the
/// address all but the lowest n bits: that takes one word, and comparing keys one instruction.
/// Of addresses the lowest 58 bits count; sizes of 2^58 bytes and more are all alike.
class IndexKey {
 public:
  /// Behind every key of a size and an address.
  constexpr IndexKey() = default;
  constexpr IndexKey(Bytes size, Address address) {
    const Bytes bytes = std::min(size, most);
    const int log2 = static_cast<int>(std::bit_width(bytes | 1)) - 1;
    // The highest bit of the size makes it n + 1.
    word_ = (Word(log2) << bits) + (bytes << (bits - log2)) + ((address & most) >> log2);
  }

  /// The size it was made of.
  constexpr Bytes size() const {
    const Word width = word_ >> bits;
    return width == 0 ? 0 : ((word_ & most) | (most + 1)) >> (bits + 1 - width);
  }

  friend constexpr bool operator==(IndexKey, IndexKey) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 finds a null pointer in the default.
  friend constexpr auto operator<=>(IndexKey, IndexKey) = default;

 private:
  using Word = std::uint64_t;
  static constexpr int bits = 58;
  static constexpr Word most = (Word{1} << bits) - 1;

  Word word_ = ~Word{0};
};

}  // namespace fragshim
