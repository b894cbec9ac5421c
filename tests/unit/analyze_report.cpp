// Reports from logs whole, cut, merged and spoilt.
#include "core/analyze/report.hpp"

#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;
using testing::is_near;

namespace {

std::string start(const std::string& rank = "0") {
  return R"({"schema":1,"type":"start","time":100.5,"pid":42,"version":"0.1.0","program":"train.py",)"
         R"("host":"node1","rank":")" +
         rank +
         R"(","device":0,"device_name":"NVIDIA H200","card_total":150000000000,"config":{)"
         R"("FRAGSHIM_MODE":{"value":"allocate","source":"default"},)"
         R"("max_split_size_mb":{"value":"128","source":"PYTORCH_CUDA_ALLOC_CONF"}}})"
         "\n";
}

std::string sample(double time, Bytes requested, Bytes reserved,
                   const std::string& type = "sample") {
  return R"({"schema":1,"type":")" + type + R"(","time":)" + std::to_string(time) +
         R"(,"pid":42,"device":0,"heap":"stream_ordered","requested":)" +
         std::to_string(requested) + R"(,"allocated":)" + std::to_string(requested) +
         R"(,"reserved":)" + std::to_string(reserved) + R"(,"allocated_peak":)" +
         std::to_string(requested) + R"(,"reserved_peak":)" + std::to_string(reserved) +
         R"(,"pinned":1048576,"allocations":7,"device_alloc":3,"retries":1})" + "\n";
}

const std::string oom =
    R"({"schema":1,"type":"oom","time":104.5,"pid":42,"device":0,"heap":"synchronous",)"
    R"("stream":"0x0","class":"fragmentation","capacity":943718400,"available":874512384,)"
    R"("shortfall":0,"request":524288000,"largest_reachable":467664896,"largest_bound":0,)"
    R"("reserved":536870912,"allocated":69206016,"pinned":467664896,"ooms":1,)"
    R"("pins":[{"address":"0x7f00","size":17301504,"pinned":116916224}]})"
    "\n";

const std::string warning =
    R"({"schema":1,"type":"warning","time":104.6,"pid":42,"code":"ipc_interior","text":"not that"})"
    "\n";

ProcessReport read(const std::string& log) { return read_log(ByteStream::of(log, "log.jsonl")); }

}  // namespace

TEST_CASE("a log is added up") {
  const auto p = read(start() + sample(101, 3 * GiB, 4 * GiB) + sample(102, GiB, 4 * GiB) + oom +
                      warning + warning + sample(110.5, 0, 0, "exit"));
  CHECK(p.records == 7);
  CHECK(p.ended);
  CHECK(p.pid == 42);
  CHECK(is_near(p.end - p.begin, 10));
  REQUIRE(p.settings.size() == 1);  // what is not default
  CHECK(p.settings[0].name == "max_split_size_mb");
  const HeapReport& heap = p.heaps.at({0, "stream_ordered"});
  CHECK(heap.requested_peak == 3 * GiB);
  CHECK(heap.reserved_peak == 4 * GiB);
  CHECK(is_near(heap.utilisation(), 0.75));
  CHECK(heap.requested_end == 0);
  CHECK(heap.allocations == 7);
  CHECK(p.heaps.at({0, "synchronous"}).ooms == 1);
  REQUIRE(p.failures.size() == 1);
  CHECK(p.failures[0].cause == "fragmentation");
  CHECK(is_near(p.failures[0].seconds, 4));
  CHECK(p.failures[0].worst_pin == "0x7f00");
  REQUIRE(p.warnings.size() == 1);
  CHECK(p.warnings[0].count == 2);

  const std::string text = report_text({p});
  for (const char* part :
       {"train.py, rank 0, process 42 on node1, 10.0 s\n", "GPU 0: NVIDIA H200, 139.70 GiB",
        "settings: max_split_size_mb=128 (PYTORCH_CUDA_ALLOC_CONF)\n", "75.0%",
        "failures: 1 by fragmentation", "500.00 MiB refused by fragmentation",
        "largest block in reach 446.00 MiB", "a block of 16.50 MiB at 0x7f00 keeps 111.50 MiB",
        "warning ipc_interior: not that (2 times)"}) {
    CAPTURE(part, text);
    CHECK(contains(text, part));
  }
}

TEST_CASE("the log of a killed process tells what it can") {
  const std::string log = start() + sample(101, GiB, 2 * GiB);
  const auto p = read(log + sample(102, 2 * GiB, 2 * GiB).substr(0, 60));
  CHECK_FALSE(p.ended);
  CHECK(p.truncated);
  CHECK(p.bad_lines == 0);
  CHECK(p.heaps.at({0, "stream_ordered"}).reserved_peak == 2 * GiB);
  CHECK(contains(report_text({p}), "no exit record"));
  CHECK(contains(report_text({p}), "cut off"));
}

TEST_CASE("lines that are no records are counted, fields that are odd are zero") {
  const auto p = read(start() + "nonsense\n[1,2]\n{\"schema\":2,\"type\":\"sample\"}\n{}\n\n" +
                      R"({"schema":1,"type":"sample","device":-1,"reserved":"x","requested":-5,)"
                      R"("allocated":1e30,"heap":7})"
                      "\n" +
                      R"({"schema":1,"type":"oom","pins":[3]})" + "\n" +
                      R"({"schema":1,"type":"news"})" + "\n");
  CHECK(p.bad_lines == 4);
  CHECK(p.records == 4);
  CHECK(p.failure_classes.at("unclassified") == 1);
  CHECK(p.heaps.at({0, ""}).reserved_peak == 0);
  CHECK(contains(report_text({p}), "4 lines of the log left out"));
}

TEST_CASE("several ranks have a line each and a total") {
  const auto zero = read(start("0") + sample(101, GiB, 2 * GiB) + oom);
  const auto one = read(start("1") + sample(101, 3 * GiB, 4 * GiB) + oom);
  const std::string text = report_text({zero, one});
  CHECK(contains(text, "2 processes"));
  CHECK(contains(text, "rank 0 "));
  CHECK(contains(text, "rank 1 "));
  CHECK(contains(text, "failures: 2 by fragmentation"));
  const auto json = report_json({zero, one});
  CHECK(json["processes"].size() == 2);
  CHECK(json["total"]["reserved_peak"] == 6 * GiB);
  CHECK(json["total"]["failure_classes"]["fragmentation"] == 2);
  CHECK(json["processes"][1]["rank"] == "1");
  CHECK(json["processes"][0]["heaps"][0]["heap"] == "stream_ordered");
}

TEST_CASE("a leak is told with its slope") {
  std::string log = start();
  for (int i = 0; i < 400; ++i) {
    const Bytes held = GiB + static_cast<Bytes>(i % 5) * GiB + static_cast<Bytes>(i) * 10 * MiB;
    log += sample(101 + i, held, 8 * GiB);
  }
  const auto p = read(log);
  CHECK(contains(report_text({p}), "suspected leak: GPU 0 stream_ordered"));
  CHECK(contains(report_text({p}), "MiB a minute)"));
  const auto growth = report_json({p})["processes"][0]["heaps"][0]["growth"];
  CHECK(is_near(growth["bytes_per_second"].get<double>(), 10.0 * MiB, 0.05));
}
