// The driver fails, call by call: the program beneath which it does so hardly notices. On the
// stand-in driver, which fails as it is told.
#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

/// What the shim asks of the driver while a program takes and gives memory.
const char* const asked[] = {
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuCtxRecordEvent",
    "cuEventCreate",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuStreamWaitEvent",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetId",
    "cuStreamGetCtx",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuDeviceGetAttribute",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetName",
    "cuMemPoolTrimTo",
    "cuMemGetAllocationGranularity",
    "cuDriverGetVersion",
    "cuEventDestroy_v2",
    "cuMemPoolGetAttribute",
    "cuDevicePrimaryCtxGetState",
};
const int codes[] = {2, 999};  // out of memory; unknown error

std::string number_after(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word + " ");
  return at == std::string::npos
             ? ""
             : text.substr(at + word.size() + 1, text.find('\n', at) - at - word.size() - 1);
}

/// Runs the program under a rule; no rule may end it, cost it memory, or fail a free. The number of
/// its requests that were refused.
std::string refused_under(const std::string& rule) {
  const Outcome outcome = run_preloaded({probe("faults")}, {{"LD_LIBRARY_PATH", standin_folder()},
                                                            {"FRAGSHIM_LOG", "off"},
                                                            {"FRAGSHIM_QUIET", "1"},
                                                            {"STANDIN_FAIL", rule}});
  INFO(rule << ": " << outcome.output << outcome.errors);
  CHECK(outcome.code == 0);
  CHECK(number_after(outcome.output, "missing") == "0");
  CHECK(number_after(outcome.output, "free") == "");
  return number_after(outcome.output, "refused");
}

}  // namespace

TEST_CASE("one failing call of the driver costs one request at most, and no memory") {
  if (standin_folder().empty()) return;
  for (const std::string name : asked) {
    for (const int code : codes) {
      for (const int at : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 25, 40, 100}) {
        const std::string rule = name + ":" + std::to_string(at) + ":" + std::to_string(code);
        const std::string refused = refused_under(rule);
        INFO(rule);
        CHECK((refused == "0" || refused == "1"));
      }
    }
  }
}

TEST_CASE("calls of the driver that fail again and again cost requests, and no memory") {
  if (standin_folder().empty()) return;
  for (const std::string name : asked) {
    for (const int code : codes) {
      for (const int every : {1, 2, 3, 7}) {
        std::string rule = name;
        rule.append(":every:")
            .append(std::to_string(every))
            .append(":")
            .append(std::to_string(code));
        refused_under(rule);
      }
    }
  }
}

TEST_CASE("the user is told once of memory that the driver refuses to map") {
  if (standin_folder().empty()) return;
  const Outcome outcome =
      run_preloaded({probe("faults")}, {{"LD_LIBRARY_PATH", standin_folder()},
                                        {"FRAGSHIM_LOG", "off"},
                                        {"STANDIN_FAIL", "cuMemMap:every:2:999"}});
  const std::string told = "refused to map memory that it has given (CUDA error 999)";
  const std::size_t at = outcome.errors.find(told);
  INFO(outcome.errors);
  CHECK(outcome.code == 0);
  REQUIRE(at != std::string::npos);
  CHECK(outcome.errors.find(told, at + 1) == std::string::npos);
}

}  // namespace fragshim::test
