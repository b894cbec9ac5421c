// The records' contents, read back by another JSON library.
#include "shim/log_records.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/preload/log_tests/log_fixture.hpp"

using namespace fragshim;
using namespace fragshim::log;
using nlohmann::json;

namespace {

constexpr Stamp stamp{1'700'000'000'000'042, 77};

Usage some_usage() {
  Usage usage;
  usage.requested = 700;
  usage.allocated = 1024;
  usage.reserved = 2 * MiB;
  usage.reserved_peak = 4 * MiB;
  usage.largest_free = MiB;
  usage.pinned = 2 * MiB - 1024;
  usage.live_blocks = 2;
  usage.free_blocks = 3;
  usage.device_alloc = 8;
  usage.device_free = 9;
  usage.free_histogram[9] = 2;
  usage.free_histogram[20] = 1;
  return usage;
}

json parse(const std::string& line) {
  CHECK(line.find('\n') == std::string::npos);
  json record = json::parse(line);
  CHECK(record["schema"] == 1);
  CHECK(record["pid"] == 77);
  CHECK(line.find("\"time\":1700000000.000042,") != std::string::npos);
  return record;
}

}  // namespace

TEST_CASE("the start record says what runs where, and why so", "[log]") {
  Settings settings;
  settings.effective.push_back({"max_split_size_mb", "128", "PYTORCH_CUDA_ALLOC_CONF"});
  const json r =
      parse(start_record(stamp, {"python3", "node1", "3"}, test::fixed_device(), settings));
  CHECK(r["type"] == "start");
  CHECK(r["version"] == FRAGSHIM_VERSION);
  CHECK(r["program"] == "python3");
  CHECK(r["host"] == "node1");
  CHECK(r["rank"] == "3");
  CHECK(r["device"] == 0);
  CHECK(r["device_name"] == "Test \"GPU\"");
  CHECK(r["device_uuid"] == "GPU-1");
  CHECK(r["card_total"] == 80 * GiB);
  CHECK(r["driver_version"] == 13000);
  CHECK(r["config"]["max_split_size_mb"]["value"] == "128");
  CHECK(r["config"]["max_split_size_mb"]["source"] == "PYTORCH_CUDA_ALLOC_CONF");
}

TEST_CASE("a sample has every measure by its name", "[log]") {
  const HeapSample sample{1, HeapKind::stream_ordered, some_usage(), 321};
  const json r = parse(sample_record(stamp, sample, {7, 9, 5, 6}));
  CHECK(r["type"] == "sample");
  CHECK(r["device"] == 1);
  CHECK(r["heap"] == "stream_ordered");
  for (const char* name :
       {"requested",      "allocated",     "reserved",    "cached",       "requested_peak",
        "allocated_peak", "reserved_peak", "allocations", "frees",        "device_alloc",
        "device_free",    "splits",        "merges",      "stitches",     "retries",
        "trims",          "ooms",          "waits",       "largest_free", "releasable",
        "pinned",         "pending",       "streams",     "blocks",       "live_blocks",
        "segments",       "device_time"}) {
    INFO(name);
    CHECK(r.at(name).is_number_unsigned());
  }
  CHECK(r["cached"] == 2 * MiB - 1024);
  CHECK(r["blocks"] == 5);
  CHECK(r["device_alloc"] == 8);
  CHECK(r["device_time"] == 321);
  CHECK(std::abs(r["internal_fragmentation"].get<double>() - 324.0 / 1024) < 1e-6);
  CHECK(r["external_fragmentation"].get<double>() > 0.49);
  CHECK(std::abs(r["utilisation"].get<double>() - 1024.0 / (2 << 20)) < 1e-6);
  CHECK(r["free_histogram"] == json{{"9", 2}, {"20", 1}});
  CHECK(r["card_free"] == 7);
  CHECK(r["card_total"] == 9);
  CHECK(r["managed"] == 5);
  CHECK(r["host_pinned"] == 6);
  CHECK_FALSE(parse(sample_record(stamp, sample, {})).contains("card_free"));
}

TEST_CASE("a failure's record has its class, its evidence and the pins", "[log]") {
  FailureReport report{0, HeapKind::synchronous, 0x7f00, {}};
  report.evidence.request = 500 * MiB;
  report.evidence.rounded = 500 * MiB;
  report.evidence.limit = 900 * MiB;
  report.evidence.usage = some_usage();
  report.evidence.pins[0] = {0x7000000200, 512, 446 * MiB};
  report.evidence.pin_count = 1;
  const Failure failure{FailureClass::fragmentation, 900 * MiB, 834 * MiB, 0};
  const json r = parse(oom_record(stamp, report, failure, 3));
  CHECK(r["type"] == "oom");
  CHECK(r["heap"] == "synchronous");
  CHECK(r["class"] == "fragmentation");
  CHECK(r["stream"] == "0x7f00");
  CHECK(r["request"] == 500 * MiB);
  CHECK(r["limit"] == 900 * MiB);
  CHECK(r["available"] == 834 * MiB);
  CHECK(r["capacity"] == 900 * MiB);
  CHECK(r["shortfall"] == 0);
  CHECK(r["pinned"] == 2 * MiB - 1024);
  CHECK(r["pins"] ==
        json::array({{{"address", "0x7000000200"}, {"size", 512}, {"pinned", 446 * MiB}}}));
  CHECK(r["skipped"] == 3);
  report.evidence.limit = unlimited;
  CHECK(parse(oom_record(stamp, report, failure, 0))["limit"] == 0);
}

TEST_CASE("retries, trims, warnings and the exit", "[log]") {
  const json retry = parse(retry_record(stamp, {2, HeapKind::synchronous, 1, 512, 1024}, 0));
  CHECK(retry["type"] == "retry");
  CHECK(retry["request"] == 512);
  CHECK(retry["reserved"] == 1024);
  CHECK_FALSE(retry.contains("skipped"));
  const json trim = parse(trim_record(stamp, {2, HeapKind::stream_ordered, 1, 2, 3}, 0));
  CHECK(trim["type"] == "trim");
  CHECK(trim["keep"] == 1);
  CHECK(trim["released"] == 2);
  CHECK(trim["reserved"] == 3);
  const json warning = parse(warning_record(stamp, "ipc_interior", "so \"it\" is\n"));
  CHECK(warning["type"] == "warning");
  CHECK(warning["code"] == "ipc_interior");
  CHECK(warning["text"] == "so \"it\" is\n");
  const json exit = parse(exit_record(stamp, {0, HeapKind::synchronous, some_usage(), 9}, 1.5));
  CHECK(exit["type"] == "exit");
  CHECK(exit["seconds"] == 1.5);
  CHECK(exit["reserved_peak"] == 4 * MiB);
  CHECK(exit["device_time"] == 9);
}
