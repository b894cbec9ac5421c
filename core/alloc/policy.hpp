// PyTorch's rules about sizes: small pure functions of the configuration. Nothing else decides how
// a request is rounded, what a new segment takes, or which block may serve or be split.
#pragma once

#include <algorithm>
#include <bit>

#include "config/allocation_config.hpp"
#include "core/types.hpp"

namespace fragshim::policy {

inline constexpr Bytes min_block = 512;
inline constexpr Bytes small_limit = MiB;  // requests up to this go to the small pool
inline constexpr Bytes small_segment = 2 * MiB;
inline constexpr Bytes min_large_segment = 10 * MiB;  // below: a segment of large_segment_size
inline constexpr Bytes large_granularity = 2 * MiB;

/// The next multiple of a `divisions`-th part (a power of two) of the power of two below `size`.
Bytes next_division(Bytes size, Bytes divisions) noexcept;

/// `size` rounded as the configuration asks: to 512 bytes, or to a fraction of its power of two.
inline Bytes round_size(const AllocationConfig& config, Bytes size) noexcept {
  if (size < min_block) return min_block;
  const int log2 = static_cast<int>(std::bit_width(size)) - 1;
  const auto interval = static_cast<std::size_t>(std::clamp(log2 - 20, 0, 15));
  const Bytes divisions = config.roundup_power2_divisions[interval];
  if (divisions > 1 && size > min_block * divisions) return next_division(size, divisions);
  return round_up(size, min_block);
}

/// What a new segment for a rounded request of `size` takes.
Bytes segment_size(const AllocationConfig& config, Bytes size) noexcept;

constexpr bool is_small(Bytes rounded) noexcept { return rounded <= small_limit; }

/// Whether a free block may serve a rounded request it is large enough for.
constexpr bool may_serve(const AllocationConfig& config, Bytes block, Bytes size) noexcept {
  if (size < config.max_split_size) return block < config.max_split_size;
  return block - size < config.max_non_split_rounding;
}

/// Whether a block is split for a rounded request, `rest` bytes of it being left over.
constexpr bool should_split(const AllocationConfig& config, bool small, Bytes size,
                            Bytes rest) noexcept {
  if (small || config.expandable_segments) return rest >= min_block;
  return size < config.max_split_size && rest > small_limit;
}

}  // namespace fragshim::policy
