// The hooked dlsym, as other libraries and programs meet it. No driver needed.
#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

void check_clean(const Outcome& outcome) {
  CHECK(outcome.errors == "");
  CHECK(outcome.code == 0);
  CHECK(outcome.files.empty());
}

/// Runs a case of the probe with and without the library: what is wrong without it as well would
/// be the test's own fault.
void check_case(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  std::vector<std::string> command{probe("probe")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  SECTION("alone") { check_clean(run(command, variables)); }
  SECTION("preloaded") { check_clean(run_preloaded(command, variables)); }
}

Variables driver(const std::string& kind) { return {{"LD_LIBRARY_PATH", probe(kind)}}; }

}  // namespace

TEST_CASE("a second preloaded library finds the next function, not itself") {
  const std::string second = probe("libsecond.so");
  const std::string order = GENERATE("before", "behind");
  Variables variables;
  variables["LD_PRELOAD"] =
      order == "before" ? preload_list({second, library()}) : preload_list({library(), second});
  check_clean(run({probe("probe"), "second"}, variables));
  check_clean(
      run({probe("probe"), "second_cuda", order == "before" ? "libsecond.so" : "libfragshim.so"},
          variables));
}

TEST_CASE("names that only begin like the driver's stay another library's own") {
  check_case({"lookalike", probe("liblookalike.so")});
}

TEST_CASE("the same while a driver is loaded") {
  Variables variables = driver("forwarding");
  variables["LD_PRELOAD"] = preload_list({probe("forwarding/libcuda.so.1")});
  check_case({"lookalike", probe("liblookalike.so")}, variables);
}

TEST_CASE("RTLD_DEFAULT in a local plugin searches the plugin's own scope") {
  check_case({"plugin", probe("libplugin.so")});
}

TEST_CASE("dlerror speaks of the caller's own look-up") { check_case({"errors"}); }

TEST_CASE("dlerror after hooked look-ups") {
  check_clean(run_preloaded({probe("probe"), "errors_with_driver"}, driver("forwarding")));
}

TEST_CASE("without CUDA the exported names answer like a driver that is not initialised") {
  check_clean(run_preloaded({probe("probe"), "absent"}));
}

TEST_CASE("libraries that want much static TLS still load late") {
  check_case({"late", probe("liblate.so")});
}

TEST_CASE("the library itself loads late") {
  check_clean(run({probe("probe"), "late_fragshim", library()}));
}

TEST_CASE("look-ups work in constructors that run before ours") {
  Variables variables = driver("forwarding");
  variables["LD_PRELOAD"] = probe("libearly.so");
  SECTION("hooked") {
    const Outcome outcome = run_preloaded({probe("probe"), "early"}, variables);
    check_clean(outcome);
    CHECK(lines(outcome.output) == std::vector<std::string>{"early", "libfragshim.so:cuMemAlloc_v2",
                                                            "libcuda.so.1:cuInit", "found"});
  }
  SECTION("mode off is known there already") {
    variables["FRAGSHIM_MODE"] = "off";
    const Outcome outcome = run_preloaded({probe("probe"), "early"}, variables);
    check_clean(outcome);
    CHECK(lines(outcome.output)[1] == "libcuda.so.1:cuMemAlloc_v2");
  }
}

}  // namespace fragshim::test
