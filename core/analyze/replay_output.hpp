// A replay's result as the contract's JSON object, and as a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/analyze/replay.hpp"

namespace fragshim {

/// One trace replayed: the name it was given by, the conf string as given, and what came out.
struct ReplayedTrace {
  std::string trace;
  std::string conf;
  PolicyKind policy = PolicyKind::native;
  Bytes capacity = unlimited;
  ReplayResult result;
  std::optional<RecordedState> recorded = {};  // what the recording itself says
};

/// A line that says what of a trace is not replayed; empty where all is.
std::string left_out_note(const std::string& trace, const TraceCounts& counts);

/// One line, without its end. `capacity` is 0 where there is no limit.
std::string replay_json(const ReplayedTrace& replayed);

/// A header and a line for each trace, then a line for each thing that is odd about one.
std::string replay_text(const std::vector<ReplayedTrace>& replayed);

}  // namespace fragshim
