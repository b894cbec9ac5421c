// What a record in the binary trace costs the program that is traced, from one thread and several.
//
// usage: bench_trace [--quick]     writes to the temporary folder and removes it again
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/record/trace_writer.hpp"

using namespace fragshim;

namespace {

void append(TraceWriter& writer, std::size_t records, std::uint32_t thread) {
  Event event;
  event.thread = thread;
  event.action = Action::allocate;
  for (std::size_t i = 0; i < records; ++i) {
    event.time_ns = static_cast<std::int64_t>(i);
    event.address = 0x7f0000000000 + i * 512;
    event.size = 512;
    writer.append(event);
  }
}

/// Nanoseconds a record, as each thread sees them; negative where the trace was cut short.
double record_cost(const std::string& path, std::size_t records, unsigned threads) {
  TraceWriter writer;
  if (!writer.open(path.c_str(), TraceHeader{}).ok()) return -1;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] { append(writer, records, t); });
  }
  for (std::thread& worker : workers) worker.join();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  writer.close();
  const auto expected = sizeof(TraceHeader) + records * threads * sizeof(TraceRecord);
  const bool whole = std::filesystem::file_size(writer.path()) == expected;
  std::filesystem::remove(writer.path());
  return whole ? taken.count() / static_cast<double>(records) : -1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const std::size_t records = quick ? 100'000 : 2'000'000;
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("fragshim-bench-" + std::to_string(getpid()) + ".fstrace"))
                               .string();
  bool good = true;
  std::printf("threads  ns a record\n");
  for (const unsigned threads : {1u, 2u, 4u}) {
    const double cost = record_cost(path, records / threads, threads);
    good = good && cost >= 0;
    std::printf("%7u  %11.1f\n", threads, cost);
  }
  if (!good) std::printf("a trace was cut short\n");
  return good ? 0 : 1;
}
