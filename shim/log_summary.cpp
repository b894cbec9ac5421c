#include "shim/log_summary.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace fragshim::log {
namespace {

constexpr std::size_t heap_line_limit = 3;  // two lines a heap; six more at most around them

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, pattern);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 misses the va_start.
  std::vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

double percent(Bytes part, Bytes whole) {
  return whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string peak_line(const HeapTotal& heap) {
  const Usage& u = heap.sample.usage;
  return format("GPU %d %s: peak %s allocated, %s reserved (utilisation %.1f %%)",
                heap.sample.device, std::string(name(heap.sample.kind)).c_str(),
                human_size(u.allocated_peak).c_str(), human_size(u.reserved_peak).c_str(),
                percent(u.allocated_peak, u.reserved_peak));
}

std::string waste_line(const HeapTotal& heap) {
  const Usage& u = heap.sample.usage;
  const Waste& w = heap.worst;
  std::string line = format("  %" PRIu64 " allocations, %" PRIu64 " driver calls", u.allocations,
                            u.device_alloc + u.device_free);
  if (w.sum() == 0) return line;
  return line + format("; most unused: %s pinned, %s releasable, %s by rounding",
                       human_size(w.pinned).c_str(), human_size(w.releasable).c_str(),
                       human_size(w.rounding).c_str());
}

/// The heaps worth a line: those that served anything, the largest first.
std::vector<HeapTotal> by_size(const std::vector<HeapTotal>& heaps) {
  std::vector<HeapTotal> used;
  for (const HeapTotal& heap : heaps) {
    if (heap.sample.usage.allocations + heap.sample.usage.ooms != 0) used.push_back(heap);
  }
  std::stable_sort(used.begin(), used.end(), [](const auto& a, const auto& b) {
    return a.sample.usage.reserved_peak > b.sample.usage.reserved_peak;
  });
  return used;
}

void add_heap_lines(std::vector<std::string>& lines, const SummaryFacts& facts) {
  const std::vector<HeapTotal> used = by_size(facts.heaps);
  const std::size_t shown = std::min(used.size(), heap_line_limit);
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back(peak_line(used[i]));
    lines.push_back(waste_line(used[i]));
  }
  if (shown < used.size()) {
    lines.push_back(format("%zu smaller heaps are in the log", used.size() - shown));
  }
}

std::string failure_line(const SummaryFacts& facts) {
  std::uint64_t count = 0;
  std::string classes;
  for (std::size_t i = 0; i < failure_classes; ++i) {
    if (facts.failures[i] == 0) continue;
    count += facts.failures[i];
    const std::string cause(fragshim::name(static_cast<FailureClass>(i)));
    classes +=
        format("%s%" PRIu64 " %s", classes.empty() ? "" : ", ", facts.failures[i], cause.c_str());
  }
  if (count == 0) return {};
  const char* const bold = facts.colour ? "\033[1m" : "";
  const char* const plain = facts.colour ? "\033[0m" : "";
  return format("%sout of memory %" PRIu64 " time%s%s: %s", bold, count, count == 1 ? "" : "s",
                plain, classes.c_str());
}

std::string pressure_line(const SummaryFacts& facts) {
  Counters sum;
  for (const HeapTotal& heap : facts.heaps) {
    sum.retries += heap.sample.usage.retries;
    sum.waits += heap.sample.usage.waits;
    sum.trims += heap.sample.usage.trims;
  }
  if (sum.retries + sum.waits + facts.warnings == 0) return {};
  return format("%" PRIu64 " retries, %" PRIu64 " waits, %" PRIu64 " trims, %" PRIu64 " warnings",
                sum.retries, sum.waits, sum.trims, facts.warnings);
}

}  // namespace

std::string human_size(Bytes size) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(size);
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return format("%" PRIu64 " B", size);
  return format(value < 9.995   ? "%.2f %s"
                : value < 99.95 ? "%.1f %s"
                                : "%.0f %s",
                value, units[unit]);
}

std::string shell_word(const std::string& text) {
  static constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + '\'';
}

std::vector<std::string> summary_lines(const SummaryFacts& facts) {
  std::vector<std::string> lines;
  lines.push_back(
      format("%.64s, process %d, %.1f s", facts.program.c_str(), facts.pid, facts.seconds));
  add_heap_lines(lines, facts);
  for (const std::string& line : {failure_line(facts), pressure_line(facts)}) {
    if (!line.empty()) lines.push_back(line);
  }
  if (!facts.log_path.empty()) {
    lines.push_back("log: " + facts.log_path);
    lines.push_back("next: fragrun report " + shell_word(facts.log_path));
  }
  const std::string mark = facts.colour ? "\033[2mfragshim:\033[0m " : "fragshim: ";
  for (std::string& line : lines) line.insert(0, mark);
  return lines;
}

}  // namespace fragshim::log
