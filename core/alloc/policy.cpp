#include "core/alloc/policy.hpp"

#include <algorithm>
#include <bit>

namespace fragshim::policy {
namespace {

Bytes divisions_for(const AllocationConfig& config, Bytes size) {
  const int log2 = static_cast<int>(std::bit_width(size)) - 1;
  return config.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(log2 - 20, 0, 15))];
}

/// The next multiple of a `divisions`-th part of the power of two below `size`.
Bytes next_division(Bytes size, Bytes divisions) {
  if (std::has_single_bit(size)) return size;
  const Bytes floor = std::bit_floor(size);
  const Bytes step = floor >> (std::bit_width(divisions) - 1);
  return step == 0 ? floor << 1 : round_up(size, step);
}

}  // namespace

Bytes round_size(const AllocationConfig& config, Bytes size) noexcept {
  if (size < min_block) return min_block;
  const Bytes divisions = divisions_for(config, size);
  if (divisions > 1 && size > min_block * divisions) return next_division(size, divisions);
  return round_up(size, min_block);
}

Bytes segment_size(const AllocationConfig& config, Bytes size) noexcept {
  if (size <= small_limit) return small_segment;
  if (size < min_large_segment) return config.large_segment_size;
  return round_up(size, large_granularity);
}

}  // namespace fragshim::policy
