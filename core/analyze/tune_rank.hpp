// What makes one setting better than another.
#pragma once

#include <vector>

#include "core/analyze/tune.hpp"

namespace fragshim {

/// A capacity with a little room to spare: no run is exactly like the one that was recorded.
constexpr Bytes roomy_part(Bytes capacity) { return capacity - capacity / 32; }

/// What needs up to this much more than `least` needs as good as the same.
constexpr Bytes alike_need(Bytes least) { return least + least / 50; }

/// Microseconds that a setting costs: its driver calls, and the waits of its retries.
double tune_cost_us(const TuneRow& row);

/// An allocator's rows, the best first.
std::vector<const TuneRow*> ranked_rows(const Tuning& tuning, TunedAllocator allocator);

}  // namespace fragshim
