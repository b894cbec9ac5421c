// Tune: what it finds is true of a replay, and what it recommends fits.
#include <algorithm>

#include "config/conf_string.hpp"
#include "core/analyze/byte_stream.hpp"
#include "core/analyze/replay.hpp"
#include "core/analyze/tune.hpp"
#include "core/analyze/tune_output.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;

namespace {

const std::string data = FRAGSHIM_TEST_DATA;

/// A cached block of 512 MiB is cut up by four small ones, then 500 MiB are wanted.
const std::string pinned_cache =
    "Action,Pointer,Size,Stream\n"
    "allocate,0x1,536870912,0\nfree,0x1,536870912,0\n"
    "allocate,0x2,17301504,0\nallocate,0x3,17301504,0\n"
    "allocate,0x4,17301504,0\nallocate,0x5,17301504,0\nallocate,0x6,524288000,0\n";

std::vector<TuneTrace> traces_of(const std::vector<std::string>& texts) {
  std::vector<TuneTrace> out;
  for (const std::string& text : texts) {
    out.push_back({"t.csv", StoredSteps(*open_events(ByteStream::of(text, "t.csv")))});
  }
  return out;
}

Tuning tune_texts(const std::vector<std::string>& texts, Bytes capacity, unsigned threads = 2) {
  TuneOptions options;
  options.capacity = capacity;
  options.threads = threads;
  return tune(traces_of(texts), options);
}

ReplayResult replay_row(const std::string& text, const TuneRow& row, Bytes capacity) {
  ReplayOptions options;
  options.config = row.setting.config;
  options.policy = row.setting.policy;
  options.capacity = capacity;
  return replay(*open_events(ByteStream::of(text, "t.csv")), options);
}

std::string advice(const Tuning& tuning, TunedAllocator allocator) {
  std::string out;
  for (const std::string& line : tune_advice(tuning, allocator)) out += line + "\n";
  return out;
}

}  // namespace

TEST_CASE("a trace in memory replays as one that is read") {
  const std::string path = data + "/traces/detect.csv.xz";
  const StoredSteps stored(*open_events(path));
  for (const Bytes capacity : {unlimited, 14 * GiB}) {
    ReplayOptions options;
    options.capacity = capacity;
    const ReplayResult memory = replay(stored, options);
    const ReplayResult file = replay(*open_events(path), options);
    CHECK(memory.events == file.events);
    CHECK(memory.requested_peak == file.requested_peak);
    CHECK(memory.reserved_peak == file.reserved_peak);
    CHECK(memory.reserved_end == file.reserved_end);
    CHECK(memory.retries == file.retries);
    CHECK(memory.ooms == file.ooms);
    CHECK(memory.first_oom_event == file.first_oom_event);
    CHECK(memory.device_time_us == file.device_time_us);
    if (capacity == unlimited) CHECK(stored.requested_peak() == file.requested_peak);
  }
}

TEST_CASE("a split limit saves the run whose cache is pinned") {
  const Tuning tuning = tune_texts({pinned_cache}, 900 * MiB);
  const TuneRow& standard = tuning.standard(TunedAllocator::pytorch);
  CHECK(standard.failures == 1);
  CHECK(standard.needed > 900 * MiB);
  const TuneRow& best = tuning.best(TunedAllocator::pytorch);
  CHECK(best.completes());
  CHECK(best.roomy);
  CHECK(contains(best.setting.conf, "max_split_size_mb"));
  CHECK(replay_row(pinned_cache, best, 900 * MiB).ooms == 0);
  CHECK(tune_line(best.setting) == "export PYTORCH_CUDA_ALLOC_CONF=" + best.setting.conf);
  CHECK(contains(advice(tuning, TunedAllocator::pytorch), "where the default fails 1 time\n"));
  CHECK(tune_line(tuning.best(TunedAllocator::fragshim).setting) == "fragrun -- COMMAND");
}

TEST_CASE("every smallest capacity is one that suffices, and hardly less does") {
  const Tuning tuning = tune_texts({pinned_cache}, 900 * MiB);
  int found = 0;
  for (const TuneRow& row : tuning.rows) {
    if (row.needed == 0) continue;
    ++found;
    INFO(row.setting.conf << " in " << row.needed);
    CHECK(replay_row(pinned_cache, row, row.needed).ooms == 0);
    const bool at_floor = row.needed - 4 * MiB < tuning.requested_peak;
    CHECK((at_floor || replay_row(pinned_cache, row, row.needed - 4 * MiB).ooms > 0));
  }
  CHECK(found >= 8);
}

TEST_CASE("the default is best where nothing is better") {
  const std::string plain = "Action,Pointer,Size,Stream\nallocate,0x1,1048576,0\nfree,0x1,0,0\n";
  const Tuning tuning = tune_texts({plain}, GiB);
  CHECK(tuning.best(TunedAllocator::pytorch).setting.conf.empty());
  CHECK(tuning.best(TunedAllocator::fragshim).setting.conf.empty());
  CHECK(contains(advice(tuning, TunedAllocator::pytorch), "the default is best"));
}

TEST_CASE("where nothing helps, it says how much is missing") {
  const Tuning tuning = tune_texts({pinned_cache}, 500 * MiB);
  for (const TunedAllocator allocator : {TunedAllocator::pytorch, TunedAllocator::fragshim}) {
    CHECK_FALSE(tuning.best(allocator).completes());
    const std::string text = advice(tuning, allocator);
    CHECK(contains(text, "no setting completes in 500.00 MiB"));
    CHECK(contains(text, "at once: no allocator can help, short of 66.00 MiB"));
    const Bytes least = tuning.least_needed(allocator);
    CHECK(least >= 566 * MiB);
    CHECK(contains(text, "too small by"));
  }
  const auto json = tune_json(traces_of({pinned_cache}), tuning);
  CHECK(json["pytorch"]["completes"] == false);
  CHECK(json["pytorch"]["short_by"] == tuning.least_needed(TunedAllocator::pytorch) - 500 * MiB);
  CHECK(json["pytorch"]["line"] == "");
}

TEST_CASE("several traces: the setting that is good for all") {
  // One block of 900 MiB: with it, no split limit can bring the need below 900 MiB.
  const std::string large = "Action,Pointer,Size,Stream\nallocate,0x1,943718400,0\n";
  const Tuning both = tune_texts({pinned_cache, large}, GiB - 12 * MiB);
  CHECK(both.requested_peak == 900 * MiB);
  CHECK(both.best(TunedAllocator::pytorch).completes());
  CHECK(both.best(TunedAllocator::pytorch).needed >= 900 * MiB);
  const Tuning tight = tune_texts({pinned_cache, large}, 880 * MiB);
  CHECK_FALSE(tight.best(TunedAllocator::pytorch).completes());
}

TEST_CASE("threads do not change what is found") {
  const Tuning one = tune_texts({pinned_cache}, 900 * MiB, 1);
  const Tuning four = tune_texts({pinned_cache}, 900 * MiB, 4);
  REQUIRE(one.rows.size() == four.rows.size());
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    CHECK(one.rows[i].needed == four.rows[i].needed);
    CHECK(one.rows[i].retries == four.rows[i].retries);
    CHECK(one.rows[i].shown == four.rows[i].shown);
  }
}
