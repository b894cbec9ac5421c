// What an allocator would have done with a recorded trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/analyze/event_source.hpp"
#include "core/analyze/replay_heap.hpp"
#include "core/analyze/replay_steps.hpp"
#include "core/types.hpp"

namespace fragshim {

/// Sizes in bytes. The names are those of facts' metrics and of the JSON.
struct ReplayResult : TraceCounts {
  Bytes requested_peak = 0;
  Bytes allocated_peak = 0;
  Bytes reserved_peak = 0;
  Bytes reserved_end = 0;
  Bytes allocated_end = 0;
  std::uint64_t device_alloc = 0;
  std::uint64_t device_free = 0;
  std::uint64_t retries = 0;
  std::uint64_t ooms = 0;
  std::int64_t first_oom_event = -1;  // its row, from 1; -1: none
  Bytes inactive_split_end = 0;       // cached at the end, beside live blocks
  double device_time_us = 0;          // modelled
  double replay_ns_per_event = 0;     // spent in the allocator

  std::map<std::string, std::uint64_t> failure_classes;  // of the failures that were classified
};

/// Sends every event to a fresh heap on a simulated device. A request that fails leaves no block,
/// and its free does nothing. Throws what the source throws, and std::invalid_argument for a policy
/// that this build does not have.
ReplayResult replay(EventSource& source, const ReplayOptions& options);
/// The same for a trace in memory.
ReplayResult replay(const StoredSteps& trace, const ReplayOptions& options);

}  // namespace fragshim
