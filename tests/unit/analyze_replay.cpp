// Replay: what counts as an event, what a row does, and what is said about it.
#include "core/analyze/replay.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/conf_string.hpp"
#include "core/analyze/byte_stream.hpp"
#include "core/analyze/device_curve.hpp"
#include "core/analyze/replay_output.hpp"
#include "core/device/prices.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;

namespace {

const std::string header = "Action,Pointer,Size,Stream\n";

ReplayResult replay_rows(const std::string& rows, const ReplayOptions& options = {}) {
  return replay(*open_events(ByteStream::of(header + rows, "t")), options);
}

/// T1 of the oracle: five blocks of 16.5 MiB out of a cached 512, then a request of 500.
const std::string pinned_cache =
    "allocate,0x1,536870912,0\nfree,0x1,536870912,0\n"
    "allocate,0x2,17301504,0\nallocate,0x3,17301504,0\n"
    "allocate,0x4,17301504,0\nallocate,0x5,17301504,0\nallocate,0x6,524288000,0\n";

}  // namespace

TEST_CASE("peaks and ends are what the rows add up to") {
  const auto r = replay_rows("allocate,0x1,1000,0\nallocate,0x2,3000,0\nfree,0x1,1000,0\n");
  CHECK(r.events == 3);
  CHECK(r.requested_peak == 4000);
  CHECK(r.allocated_peak == 1024 + 3072);
  CHECK(r.allocated_end == 3072);
  CHECK(r.reserved_peak == 2 * MiB);
  CHECK(r.reserved_end == 2 * MiB);
  CHECK(r.inactive_split_end == 2 * MiB - 3072);
  CHECK(r.device_alloc == 1);
  CHECK(r.first_oom_event == -1);
  CHECK(r.device_time_us > 0);
}

TEST_CASE("a trim gives back what is cached") {
  const auto r = replay_rows("allocate,0x1,1000,0\nfree,0x1,1000,0\ntrim,,,\n");
  CHECK(r.reserved_end == 0);
  CHECK(r.device_free == 1);
}

TEST_CASE("a request that fails leaves no block, and its free does nothing") {
  ReplayOptions options;
  options.capacity = 10 * MiB;
  const auto r = replay_rows(
      "allocate,0x1,1000,0\nallocate,0x2,52428800,0\nfree,0x2,52428800,0\nfree,0x1,1000,0\n",
      options);
  CHECK(r.ooms == 1);
  CHECK(r.first_oom_event == 2);
  CHECK(r.allocated_end == 0);
  CHECK(r.unmatched_frees == 0);
  CHECK(r.failure_classes.at("true_shortage") == 1);
}

TEST_CASE("the classic complaint is classified as fragmentation") {
  ReplayOptions options;
  options.capacity = 900 * MiB;
  const auto r = replay_rows(pinned_cache, options);
  CHECK(r.ooms == 1);
  CHECK(r.retries == 1);
  CHECK(r.failure_classes.at("fragmentation") == 1);
  options.config = parse_conf("max_split_size_mb:128").allocation;
  CHECK(replay_rows(pinned_cache, options).ooms == 0);
}

TEST_CASE("the configuration's own limits count against the capacity") {
  ReplayOptions options;
  options.capacity = 8 * GiB;
  options.config.per_process_memory_fraction = 900.0 / 8192;
  CHECK(replay_rows(pinned_cache, options).ooms == 1);
  options.config.per_process_memory_fraction = 1;
  options.config.memory_limit = 900 * MiB;
  CHECK(replay_rows(pinned_cache, options).ooms == 1);
}

TEST_CASE("virtual memory under a limit never takes more") {
  ReplayOptions options;
  options.policy = PolicyKind::stitch;
  options.capacity = 900 * MiB;
  const auto r = replay_rows(pinned_cache, options);
  CHECK(r.reserved_peak <= options.capacity);
  CHECK(r.requested_peak >= 536870912);
  options.capacity = 100 * MiB;
  CHECK(replay_rows(pinned_cache, options).ooms == 2);
}

TEST_CASE("rows that are no request are counted and have no effect") {
  const auto r = replay_rows(
      "allocate failure,(nil),999,0\nfree,0x99,1,0\nallocate,(nil),5,0\nallocate,0x5,0,0\n"
      "free,(nil),0,0\nallocate,0x1,1000,0\nallocate,0x1,2000,0\nfree,0x1,2000,0\nfree,0x1,2000,"
      "0\n");
  CHECK(r.events == 9);
  CHECK(r.recorded_failures == 1);
  CHECK(r.unmatched_frees == 2);
  CHECK(r.implied_frees == 1);
  CHECK(r.requested_peak == 2000);
  CHECK(r.allocated_end == 0);
  CHECK(replay_rows("").events == 0);
}

TEST_CASE("the JSON has the contract's fields, in its order") {
  ReplayedTrace replayed{"a \"b\".csv", "max_split_size_mb:128", PolicyKind::native, GiB, {}};
  replayed.result = replay_rows("allocate,0x1,1000,0\n");
  const std::string text = replay_json(replayed);
  CHECK_FALSE(contains(text, "\n"));
  const auto json = nlohmann::ordered_json::parse(text);
  const std::vector<std::string> contract = {"trace",
                                             "policy",
                                             "conf",
                                             "capacity",
                                             "events",
                                             "requested_peak",
                                             "allocated_peak",
                                             "reserved_peak",
                                             "reserved_end",
                                             "allocated_end",
                                             "device_alloc",
                                             "device_free",
                                             "retries",
                                             "ooms",
                                             "first_oom_event",
                                             "inactive_split_end",
                                             "device_time_us",
                                             "replay_ns_per_event"};
  std::vector<std::string> names;
  for (const auto& [name, value] : json.items()) names.push_back(name);
  REQUIRE(names.size() >= contract.size());
  names.resize(contract.size());
  CHECK(names == contract);
  CHECK(json["trace"] == "a \"b\".csv");
  CHECK(json["policy"] == "native");
  CHECK(json["capacity"] == GiB);
  CHECK(json["events"] == 1);
  replayed.capacity = unlimited;
  CHECK(nlohmann::json::parse(replay_json(replayed))["capacity"] == 0);
}

TEST_CASE("the driver's time is told as a share of the trace's, and after its first fifth") {
  // A second a row: one segment at the start, one after 99 seconds, and nothing between.
  std::string rows = "Thread,Time,Action,Pointer,Size,Stream\n";
  const auto add = [&rows](int second, const std::string& what) {
    rows += "1,00:0" + std::to_string(second / 60) + ":" + (second % 60 < 10 ? "0" : "") +
            std::to_string(second % 60) + ".000000," + what + ",0\n";
  };
  add(0, "allocate,0x1,20971520");
  for (int second = 1; second < 199; ++second) {
    add(second, second % 2 == 1 ? "free,0x1,20971520" : "allocate,0x1,20971520");
  }
  add(199, "allocate,0x2,20971520");
  add(200, "allocate,0x3,20971520");
  ReplayedTrace replayed{"t", "", PolicyKind::native, unlimited, {}};
  replayed.result = replay(*open_events(ByteStream::of(rows, "t")), {});
  const auto json = nlohmann::json::parse(replay_json(replayed));
  const double one = prices::at(prices::malloc_us, 20 * MiB);
  const auto is_near = [&json](const char* name, double wanted) {
    const double value = json[name];
    return std::abs(value - wanted) <= 1e-5 * wanted;  // times are printed in thousandths
  };
  CHECK(is_near("device_time_us", 3 * one));
  CHECK(is_near("duration_us", 200e6));
  CHECK(is_near("device_time_share", 3 * one / 200e6));
  CHECK(is_near("device_time_late_us", 2 * one));
  CHECK(is_near("device_time_late_share", 2 * one / 160e6));
  CHECK(contains(replay_text({replayed}), "of the run"));
}

TEST_CASE("a curve of many points keeps its shape") {
  DeviceCurve curve;
  CHECK(curve.spent_by(7) == 0);
  for (int second = 0; second < 1'000'000; ++second) curve.add(second, second < 500'000 ? 0 : 3);
  CHECK(curve.spent_by(-1) == 0);
  CHECK(curve.spent_by(490'000) == 0);
  CHECK(curve.spent_by(510'000) == 3);
  CHECK(curve.spent_by(2'000'000) == 3);
}

TEST_CASE("the table tells what is odd about a trace") {
  ReplayOptions options;
  options.capacity = 900 * MiB;
  ReplayedTrace replayed{"t.csv", "", PolicyKind::native, options.capacity, {}};
  replayed.result = replay_rows("free,0x77,1,0\n" + pinned_cache, options);
  const std::string text = replay_text({replayed});
  CHECK(contains(text, "512.00 MiB"));
  CHECK(contains(text, "t.csv: 1 failed by fragmentation\n"));
  CHECK(contains(text, "t.csv: the first failure is row 8\n"));
  CHECK(contains(text, "t.csv: 1 frees of addresses never allocated"));
}
