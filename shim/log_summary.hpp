// The summary on stderr when a process that used CUDA ends.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/record/failure.hpp"
#include "shim/log_totals.hpp"

namespace fragshim::log {

inline constexpr std::size_t failure_classes = 6;

struct SummaryFacts {
  std::string program;
  int pid = 0;
  double seconds = 0;
  std::vector<HeapTotal> heaps;
  std::array<std::uint64_t, failure_classes> failures{};  // by FailureClass
  std::uint64_t warnings = 0;
  std::string log_path;  // empty: there is no log
  bool colour = false;
};

/// At most this many lines come out, however many devices there are.
inline constexpr std::size_t summary_line_limit = 12;

/// The lines, without line breaks.
std::vector<std::string> summary_lines(const SummaryFacts& facts);

/// A size as people read it: "512 B", "1.50 MiB", "12.3 GiB".
std::string human_size(Bytes size);

/// `text` as a shell takes it for one word.
std::string shell_word(const std::string& text);

}  // namespace fragshim::log
