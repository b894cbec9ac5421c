// The summary: what it says, and that it stays short.
#include "shim/log_summary.hpp"

#include "tests/catch.hpp"

using namespace fragshim;
using namespace fragshim::log;

namespace {

HeapTotal heap(int device, Bytes allocated_peak, Bytes reserved_peak) {
  HeapTotal total;
  total.sample.device = device;
  total.sample.kind = HeapKind::stream_ordered;
  total.sample.usage.allocations = 10;
  total.sample.usage.allocated_peak = allocated_peak;
  total.sample.usage.reserved_peak = reserved_peak;
  return total;
}

bool contains(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the summary names peaks, waste, failures, the log and the next command", "[log]") {
  SummaryFacts facts;
  facts.program = "python3";
  facts.pid = 7;
  facts.heaps = {heap(0, 3 * GiB, 4 * GiB)};
  facts.heaps[0].worst = {4 * GiB, 512 * MiB, 256 * MiB, 3 * KiB};
  facts.failures[static_cast<std::size_t>(FailureClass::fragmentation)] = 2;
  facts.log_path = "my run.jsonl";
  const auto lines = summary_lines(facts);
  CHECK(contains(lines, "python3, process 7"));
  CHECK(contains(lines, "peak 3.00 GiB allocated, 4.00 GiB reserved (utilisation 75.0 %)"));
  CHECK(contains(lines, "512 MiB pinned, 256 MiB releasable, 3.00 KiB by rounding"));
  CHECK(contains(lines, "out of memory 2 times: 2 fragmentation"));
  CHECK(contains(lines, "fragrun report 'my run.jsonl'"));
  CHECK_FALSE(contains(lines, "\033"));
  facts.colour = true;
  CHECK(contains(summary_lines(facts), "\033[1mout of memory"));
}

TEST_CASE("the summary has twelve lines at most, the largest heaps first", "[log]") {
  SummaryFacts facts;
  for (int device = 0; device < 8; ++device) {
    facts.heaps.push_back(heap(device, 1, static_cast<Bytes>(device + 1) * GiB));
    facts.heaps.back().worst.pinned = 1;
  }
  facts.failures.fill(1);
  facts.warnings = 1;
  facts.log_path = "x";
  const auto lines = summary_lines(facts);
  CHECK(lines.size() == summary_line_limit);
  CHECK(contains(lines, "GPU 7"));
  CHECK_FALSE(contains(lines, "GPU 0"));
  CHECK(contains(lines, "5 smaller heaps"));
}

TEST_CASE("heaps that served nothing have no line", "[log]") {
  SummaryFacts facts;
  facts.heaps = {heap(0, 0, 0)};
  facts.heaps[0].sample.usage.allocations = 0;
  CHECK(summary_lines(facts).size() == 1);
}

TEST_CASE("sizes and shell words", "[log]") {
  CHECK(human_size(0) == "0 B");
  CHECK(human_size(1023) == "1023 B");
  CHECK(human_size(1536) == "1.50 KiB");
  CHECK(human_size(99 * MiB) == "99.0 MiB");
  CHECK(human_size(100 * MiB) == "100 MiB");
  CHECK(human_size(unlimited) == "16.0 EiB");
  CHECK(shell_word("a/b-1.jsonl") == "a/b-1.jsonl");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("it's") == "'it'\\''s'");
}

TEST_CASE("heaps of one kind add up, those gone before count by their peaks", "[log]") {
  std::vector<HeapSample> samples;
  const HeapSample first = heap(0, 1 * GiB, 2 * GiB).sample;
  add_sample(samples, first);
  add_sample(samples, first);
  REQUIRE(samples.size() == 1);
  CHECK(samples[0].usage.allocations == 20);
  CHECK(samples[0].usage.reserved_peak == 4 * GiB);
  Totals totals;
  totals.retire(heap(0, 1 * GiB, 9 * GiB).sample);
  totals.retire(heap(2, 1 * GiB, 1 * GiB).sample);
  const auto all = totals.all(samples);
  REQUIRE(all.size() == 2);
  CHECK(all[0].sample.usage.allocations == 30);
  CHECK(all[0].sample.usage.reserved_peak == 9 * GiB);
  CHECK(all[1].sample.device == 2);
}
