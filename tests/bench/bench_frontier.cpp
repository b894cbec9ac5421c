// What the size of chunks buys: peak reserved over peak allocated when traces are replayed by
// stitching, and the driver's time, modelled, as a share of the trace's own.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/analyze/event_source.hpp"
#include "core/analyze/replay.hpp"
#include "core/analyze/text_table.hpp"

using namespace fragshim;

namespace {

struct Choice {
  const char* name;
  ChunkSizes chunks;
};

constexpr Bytes any_share = unlimited;  // no part of the peak: the limit alone
constexpr Choice choices[] = {
    {"2 MiB", {any_share, 2 * MiB, 2 * MiB}},
    {"8 MiB", {any_share, 8 * MiB, 8 * MiB}},
    {"1/512 of the peak, 12 MiB or more", {512, 12 * MiB, 256 * MiB}},
    {"what is used", {}},
    {"1/256, 16 MiB or more", {256, 16 * MiB, 256 * MiB}},
    {"1/128, 16 MiB or more", {128, 16 * MiB, 256 * MiB}},
    {"1/64, 16 MiB or more", {64, 16 * MiB, 256 * MiB}},
};

std::string cell(const std::string& path, const ChunkSizes& chunks) {
  ReplayOptions options;
  options.policy = PolicyKind::stitch;
  options.chunks = chunks;
  const auto source = open_events(path);
  const ReplayResult result = replay(*source, options);
  const double microseconds = static_cast<double>(result.duration_ns()) / 1e3;
  char text[64];
  std::snprintf(
      text, sizeof text, "%.4f, %.2f %%",
      static_cast<double>(result.reserved_peak) / static_cast<double>(result.allocated_peak),
      microseconds > 0 ? 100 * result.device_time_us / microseconds : 0);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> traces(argv + 1, argv + argc);
  if (traces.empty()) {
    std::fputs("usage: bench_frontier TRACE...\n", stderr);
    return 2;
  }
  TextTable::Row header{"chunks"};
  for (const std::string& path : traces) header.push_back(path.substr(path.rfind('/') + 1));
  TextTable table(header);
  try {
    for (const Choice& choice : choices) {
      TextTable::Row row{choice.name};
      for (const std::string& path : traces) row.push_back(cell(path, choice.chunks));
      table.add(row);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_frontier: %s\n", error.what());
    return 1;
  }
  std::cout << table.text();
  return 0;
}
