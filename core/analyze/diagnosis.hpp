// What went wrong in a trace, or would under less memory, and which blocks are to blame.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/analyze/low_water.hpp"
#include "core/analyze/replay.hpp"
#include "core/analyze/tune.hpp"
#include "core/record/failure.hpp"

namespace fragshim {

/// A live block that keeps free memory from being of use.
struct DiagnosedPin {
  Bytes size = 0;
  Bytes pinned = 0;        // free bytes beside it
  double age_seconds = 0;  // since it was allocated
  std::uint64_t row = 0;   // where it was allocated
  StreamId stream = 0;
  std::string place;  // the line of code; empty: not known
};

/// A moment of the trace.
struct DiagnosedMoment {
  std::uint64_t row = 0;
  double seconds = 0;  // since the first event
  Bytes reserved = 0;
  Bytes allocated = 0;
  Bytes pinned = 0;
  std::vector<DiagnosedPin> pins;  // those that pin the most, first
};

/// A request that failed.
struct DiagnosedFailure {
  DiagnosedMoment moment;
  Bytes request = 0;
  StreamId stream = 0;
  std::string place;
  Failure failure;
  Bytes largest_reachable = 0;
  Bytes largest_bound = 0;
};

/// Blocks of one origin that are alive at the end.
struct DiagnosedHolder {
  std::string place;  // the line of code, else size and stream
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
};

struct Diagnosis {
  std::string trace;
  std::string conf;
  PolicyKind policy = PolicyKind::native;
  Bytes capacity = unlimited;
  TraceCounts counts;
  Counters counters;                                     // at the end
  std::map<std::string, std::uint64_t> failure_classes;  // of all failures
  std::vector<DiagnosedFailure> failures;                // the first ones
  DiagnosedMoment worst;                   // of those when memory was taken: where most was pinned
  std::optional<LowWater::Growth> growth;  // of what is requested
  std::vector<DiagnosedHolder> holders;    // where it grows: what was never freed
  std::optional<Tuning> remedy;            // where requests failed

  static constexpr std::size_t most_failures = 100;
};

/// Replays a trace once and watches. `remedy` is left to the caller. Throws what the source throws.
Diagnosis diagnose(const std::string& trace, EventSource& source, const ReplayOptions& options);

std::string diagnosis_text(const Diagnosis& diagnosis);
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace fragshim
