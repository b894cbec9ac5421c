// Host memory runs out, request by request of the library's: the program above gets its device
// memory, or the driver's answer to too little memory; its frees succeed; and once there is host
// memory again all goes on. On the stand-in driver. A sanitizer's runtime would be what asks.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

/// What came of a run of `no_memory`.
struct Result {
  std::map<std::string, long> said;
  std::map<std::string, int> records;  // of the log, by type
  bool traced = false;                 // and the trace can be read
  std::string errors;
};

Result run_short(const std::string& mode, long request, const Variables& more = {}) {
  Variables variables = more;
  variables.insert({{"LD_LIBRARY_PATH", standin_folder()},
                    {"FRAGSHIM_CONF", "memory_limit_mb:2048"},
                    {"FRAGSHIM_LOG", "log"},
                    {"FRAGSHIM_LOG_INTERVAL_MS", "1"},
                    {"FRAGSHIM_TRACE", "trace"},
                    {"FRAGSHIM_QUIET", "1"}});
  const std::string command =
      "\"$0\" $1 $2 || exit; test ! -e log || cat log; "
      "test ! -e trace || \"$3\" replay --json trace >replay";
  const Outcome outcome = run_preloaded(
      {"sh", "-c", command, probe("no_memory"), mode, std::to_string(request), FRAGSHIM_TOOL},
      variables);
  INFO(mode << " " << request << ": " << outcome.output << outcome.errors);
  CHECK(outcome.code == 0);
  Result result;
  for (const std::string& line : lines(outcome.output)) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_object()) {
      ++result.records[record["type"]];
    } else {
      const auto space = line.rfind(' ');
      result.said[line.substr(0, space)] = std::atol(line.c_str() + space);
    }
  }
  CHECK(result.said.size() == 4);  // figures, and no complaint
  CHECK(result.said["refused later"] == 0);
  CHECK(result.said["missing"] == 0);
  result.traced = std::count(outcome.files.begin(), outcome.files.end(), "trace") == 1;
  result.errors = outcome.errors;
  return result;
}

/// How many requests for host memory there are that may fail.
long requests() {
  const long asked = run_short("once", 0).said["asked"];
  CHECK(asked > 150);
  return asked;
}

}  // namespace

TEST_CASE("host memory lacks once: one request for device memory at most is refused",
          "[unsanitized]") {
  if (standin_folder().empty()) return;
  const long last = requests();
  for (long at = 1; at <= last; ++at) {
    Result result = run_short("once", at);
    INFO("request " << at);
    CHECK(result.said["refused"] <= 1);
    CHECK(result.records["start"] == 1);
    CHECK(result.records["exit"] == 2);
    CHECK(result.traced);
  }
}

TEST_CASE("host memory lacks for a while: log, trace and limits are what they are without",
          "[unsanitized]") {
  if (standin_folder().empty()) return;
  const long last = requests();
  for (long at = 1; at <= last; ++at) {
    Result result = run_short("from", at);
    INFO("request " << at << ": " << result.errors);
    CHECK(result.records["start"] == 1);
    CHECK(result.records["exit"] == 2);
    CHECK((result.traced || result.errors.find("cannot create the trace") != std::string::npos));
  }
}

TEST_CASE("host memory lacks for good: what was written can be read", "[unsanitized]") {
  if (standin_folder().empty()) return;
  const long last = requests();
  for (long at = 1; at <= last; ++at) {
    run_short("ever", at, {{"FRAGSHIM_VERBOSE", "1"}, {"FRAGSHIM_QUIET", "0"}});
  }
}

TEST_CASE("a process without addresses left, and the driver in it", "[unsanitized]") {
  if (standin_folder().empty()) return;
  Result result = run_short("limit", 0);
  CHECK(result.said["refused"] > 0);
  CHECK(result.records["start"] == 1);
  CHECK(result.records["exit"] == 2);
}

}  // namespace fragshim::test
