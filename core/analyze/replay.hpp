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
  double device_time_late_us = 0;     // ... after the first fifth of the trace's time
  double replay_ns_per_event = 0;     // spent in the allocator

  /// The driver's time as a share of the trace's; 0 where the trace has no times.
  double device_time_share() const { return share(device_time_us, 1); }
  /// The same after the first fifth.
  double device_time_late_share() const { return share(device_time_late_us, 0.8); }

  std::map<std::string, std::uint64_t> failure_classes;  // of the failures that were classified

 private:
  double share(double us, double part) const {
    const double whole = static_cast<double>(duration_ns()) * part;
    return whole > 0 ? us * 1000 / whole : 0;
  }
};

/// Sends every event to a fresh heap on a simulated device. A request that fails leaves no block,
/// and its free does nothing. Throws what the source throws, and std::invalid_argument for a policy
/// that this build does not have.
ReplayResult replay(EventSource& source, const ReplayOptions& options);
/// The same for a trace in memory.
ReplayResult replay(const StoredSteps& trace, const ReplayOptions& options);

}  // namespace fragshim
