// Which setting would have served a program best, found by replaying its traces under many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/analyze/replay_steps.hpp"
#include "core/analyze/tune_settings.hpp"
#include "core/types.hpp"

namespace fragshim {

/// A trace to tune for, and the name it was given by.
struct TuneTrace {
  std::string name;
  StoredSteps steps;
};

struct TuneOptions {
  Bytes capacity = unlimited;  // what the process may take in all
  unsigned threads = 1;
  /// Called now and then, by one thread at a time, with the replays done so far.
  std::function<void(std::uint64_t)> progress;
};

/// What one setting does with all traces: peaks are the highest of any, counts and times are sums.
struct TuneRow {
  TuneSetting setting;
  Bytes reserved_peak = 0;
  std::uint64_t failures = 0;
  std::uint64_t retries = 0;
  double device_time_us = 0;  // modelled
  bool roomy = false;         // completes in a little less than the capacity, too
  /// The smallest capacity found in which all traces complete; 0: not looked for.
  Bytes needed = 0;
  bool shown = false;  // worth a line in the table

  bool completes() const { return failures == 0; }
};

struct Tuning {
  Bytes capacity = unlimited;
  Bytes requested_peak = 0;   // the most that any trace has alive at once
  std::vector<TuneRow> rows;  // in the order of tune_settings
  std::uint64_t replays = 0;

  /// The row of the best setting of an allocator; it may fail where all do.
  const TuneRow& best(TunedAllocator allocator) const;
  const TuneRow& standard(TunedAllocator allocator) const;
  /// The least capacity that any setting of an allocator needs.
  Bytes least_needed(TunedAllocator allocator) const;
};

/// Replays every trace under every setting. Under a capacity the best setting is one that
/// completes, if possible with a little room to spare, in the least time; without one it is the
/// setting that needs the least memory. What is as good but simpler wins. At least one trace.
Tuning tune(const std::vector<TuneTrace>& traces, const TuneOptions& options);

}  // namespace fragshim
