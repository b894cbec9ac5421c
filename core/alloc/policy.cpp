#include "core/alloc/policy.hpp"

#include <bit>

namespace fragshim::policy {

Bytes next_division(Bytes size, Bytes divisions) noexcept {
  if (std::has_single_bit(size)) return size;
  const Bytes floor = std::bit_floor(size);
  const Bytes step = floor >> std::countr_zero(divisions);
  return step == 0 ? floor << 1 : round_up(size, step);
}

Bytes segment_size(const AllocationConfig& config, Bytes size) noexcept {
  if (size <= small_limit) return small_segment;
  if (size < min_large_segment) return config.large_segment_size;
  return round_up(size, large_granularity);
}

}  // namespace fragshim::policy
