// Diagnoses of traces: the class of each failure, what pins, what leaks, and what would help.
#include "core/analyze/byte_stream.hpp"
#include "core/analyze/code_place.hpp"
#include "core/analyze/diagnosis.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;

namespace {

const std::string header = "Time,Action,Pointer,Size,Stream\n";

/// A cached block of 512 MiB is cut up by four small ones, then 500 MiB are wanted.
const std::string pinned_cache =
    header +
    "00:00:01.0,allocate,0x1,536870912,0\n00:00:02.0,free,0x1,536870912,0\n"
    "00:00:03.0,allocate,0x2,17301504,0\n00:00:04.0,allocate,0x3,17301504,0\n"
    "00:00:05.0,allocate,0x4,17301504,0\n00:00:06.0,allocate,0x5,17301504,0\n"
    "00:00:08.0,allocate,0x6,524288000,0\n";

Diagnosis diagnose_text(const std::string& content, Bytes capacity = unlimited) {
  ReplayOptions options;
  options.capacity = capacity;
  return diagnose("t", *open_events(ByteStream::of(content, "t")), options);
}

std::string row(int second, const char* action, int address, Bytes size) {
  char text[100];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.0,%s,0x%x,%d,0\n", second / 3600,
                second / 60 % 60, second % 60, action, address, static_cast<int>(size));
  return text;
}

}  // namespace

TEST_CASE("a failure by fragmentation names the block that pins") {
  const Diagnosis d = diagnose_text(pinned_cache, 900 * MiB);
  REQUIRE(d.failures.size() == 1);
  const DiagnosedFailure& failure = d.failures[0];
  CHECK(failure.failure.cause == FailureClass::fragmentation);
  CHECK(failure.moment.row == 7);
  CHECK(failure.moment.seconds == 7);
  CHECK(failure.request == 500 * MiB);
  CHECK(failure.moment.pinned == 446 * MiB);
  REQUIRE(failure.moment.pins.size() == 1);
  CHECK(failure.moment.pins[0].size == 17301504);
  CHECK(failure.moment.pins[0].pinned == 446 * MiB);
  CHECK(failure.moment.pins[0].row == 6);
  CHECK(failure.moment.pins[0].age_seconds == 2);
  CHECK(d.failure_classes.at("fragmentation") == 1);
  const std::string text = diagnosis_text(d);
  CHECK(contains(text, "refused by fragmentation"));
  CHECK(contains(text, "16.50 MiB pins 446.00 MiB, 2.0 s old, from row 6 on stream 0\n"));
  CHECK(diagnosis_json(d)["failures"][0]["pins"][0]["row"] == 6);
}

TEST_CASE("a true shortage says how much is short") {
  const Diagnosis d = diagnose_text(pinned_cache, 400 * MiB);
  REQUIRE(d.failures.size() == 2);
  CHECK(d.failures[0].failure.cause == FailureClass::true_shortage);
  CHECK(d.failures[0].failure.shortfall == 112 * MiB);
}

TEST_CASE("without failures it shows when the most was pinned") {
  const Diagnosis d = diagnose_text(pinned_cache);
  CHECK(d.failures.empty());
  CHECK(d.worst.row == 7);
  CHECK(d.worst.pinned == 446 * MiB);
  CHECK(contains(diagnosis_text(d), "most pinned when memory was taken: row 7"));
}

TEST_CASE("what would have helped is part of the report") {
  Diagnosis d = diagnose_text(pinned_cache, 900 * MiB);
  std::vector<TuneTrace> traces;
  traces.push_back({"t", StoredSteps(*open_events(ByteStream::of(pinned_cache, "t")))});
  TuneOptions options;
  options.capacity = 900 * MiB;
  d.remedy = tune(traces, options);
  CHECK(contains(diagnosis_text(d), "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb"));
  CHECK(contains(diagnosis_text(d), "fragrun -- COMMAND"));
  CHECK(diagnosis_json(d)["remedy"]["pytorch"].size() >= 3);
}

TEST_CASE("a leak is told with its slope and what is never freed") {
  std::string leaky = header;
  std::string sound = header;
  int address = 100;
  for (int step = 0; step < 400; ++step) {
    leaky += row(step, "allocate", 1, 64 << 20) + row(step, "free", 1, 64 << 20);
    sound += row(step, "allocate", 1, 64 << 20) + row(step, "free", 1, 64 << 20);
    leaky += row(step, "allocate", address++, 1 << 20);
  }
  const Diagnosis d = diagnose_text(leaky);
  REQUIRE(d.growth);
  CHECK(testing::is_near(d.growth->bytes_per_second(), MiB, 0.05));
  CHECK(testing::is_near(static_cast<double>(d.growth->bytes_per_iteration()), MiB, 0.01));
  CHECK(contains(diagnosis_text(d), "1.00 MiB in each of"));
  REQUIRE(d.holders.size() == 1);
  CHECK(d.holders[0].blocks == 300);
  CHECK(contains(d.holders[0].place, "blocks of 1.00 MiB on stream 0"));
  CHECK(contains(diagnosis_text(d), "suspected leak"));
  CHECK_FALSE(diagnose_text(sound).growth);
}

TEST_CASE("the line of code is the program's own, if there is one") {
  const CodeFrame compiled{"malloc", "CUDACachingAllocator.cpp", 0};
  const CodeFrame library{"forward", "/site-packages/torch/nn/linear.py", 12};
  const CodeFrame own{"step", "/home/user/train.py", 31};
  const CodeFrame unknown{"main", "??", 0};
  CHECK(code_place({compiled, library, own}) == "/home/user/train.py:31 step");
  CHECK(code_place({unknown, compiled, library}) == "CUDACachingAllocator.cpp:0 malloc");
  CHECK(code_place({unknown}).empty());
  CHECK(code_place({}).empty());
}

TEST_CASE("a snapshot's pins name their line of code") {
  const auto source = open_events(FRAGSHIM_TEST_DATA "/snapshots/whole4.pickle");
  ReplayOptions options;
  options.capacity = 10 * MiB;
  const Diagnosis d = diagnose("s", *source, options);
  REQUIRE_FALSE(d.failures.empty());
  CHECK(contains(d.failures.front().place, "train.py:"));
  const Diagnosis whole = [&] {
    const auto again = open_events(FRAGSHIM_TEST_DATA "/snapshots/whole4.pickle");
    return diagnose("s", *again, {});
  }();
  REQUIRE_FALSE(whole.worst.pins.empty());
  CHECK(whole.worst.pins[0].place == "/home/user/train.py:10 warm");
}
