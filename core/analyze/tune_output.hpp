// What tune found, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/analyze/tune.hpp"

namespace fragshim {

/// The line to paste for a setting; empty for PyTorch's default, which needs none.
std::string tune_line(const TuneSetting& setting);

/// What to do with an allocator, and why: the first line is the recommendation, the others say
/// what it brings, what it costs, or by how much the memory is too small.
std::vector<std::string> tune_advice(const Tuning& tuning, TunedAllocator allocator);

/// A table of each allocator's best settings, and the advice.
std::string tune_text(const std::vector<TuneTrace>& traces, const Tuning& tuning);

/// Every setting that was tried, and the advice, as one JSON object. A `needed` of 0 was not
/// looked for, a `capacity` of 0 is no limit.
nlohmann::ordered_json tune_json(const std::vector<TuneTrace>& traces, const Tuning& tuning);

}  // namespace fragshim
