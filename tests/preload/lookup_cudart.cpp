// Real CUDA runtimes, old and new, shared and static: at their first call they look everything up.
// They do not start on the stand-in driver, but what they keep shows what they were given.
// Run for one runtime, FRAGSHIM_TEST_CUDART: a library, or a program that one is linked into.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

using Names = std::set<std::string>;

/// The entries a runtime was given, by the library they lie in.
std::map<std::string, Names> kept(const std::string& output) {
  std::map<std::string, Names> result;
  for (const std::string& line : lines(output)) {
    const auto space = line.find(' ');
    result[line.substr(space + 1)].insert(line.substr(0, space));
  }
  return result;
}

/// The exported symbols that a runtime's look-ups lead to, as the stand-in driver writes them down.
/// Run without our library, which looks its own entries up.
Names answered(const std::vector<std::string>& command) {
  const std::string log =
      (std::filesystem::temp_directory_path() / ("fragshim-lookups-" + std::to_string(getpid())))
          .string();
  run(command, {{"LD_LIBRARY_PATH", standin_folder()}, {"STANDIN_LOG_LOOKUPS", log}});
  std::ifstream stream(log);
  Names result;
  for (std::string line; std::getline(stream, line);) {
    const std::string symbol = line.substr(line.rfind(' ') + 1);
    if (symbol != "-") result.insert(symbol);
  }
  std::filesystem::remove(log);
  return result;
}

}  // namespace

TEST_CASE("a real CUDA runtime gets our function for every hooked entry", "[.cudart]") {
  const char* const wanted = std::getenv("FRAGSHIM_TEST_CUDART");
  const std::string runtime = wanted ? wanted : "";
  std::vector<std::string> command{runtime};
  if (runtime.find(".so") != std::string::npos) command = {probe("cudart"), runtime};
  if (standin_folder().empty() || !std::filesystem::exists(command.back())) {
    WARN("skipped: no " << command.back() << ", or no stand-in driver");
    return;
  }
  const Names asked = answered(command);
  const Outcome outcome = run_preloaded(command, {{"LD_LIBRARY_PATH", standin_folder()}});
  INFO(outcome.errors);
  REQUIRE(outcome.code == 0);
  CHECK(asked.size() > 100);

  const auto hooked_list = hooked_names();
  const Names hooked(hooked_list.begin(), hooked_list.end());
  auto found = kept(outcome.output);
  const Names& ours = found["libfragshim.so"];
  const Names& real = found["libcuda.so.1"];
  int swapped = 0;
  for (const std::string& name : asked) {
    INFO(name);
    const bool is_hooked = hooked.count(name) == 1;
    CHECK(ours.count(name) == (is_hooked ? 1 : 0));
    CHECK(real.count(name) == (is_hooked ? 0 : 1));
    swapped += is_hooked;
  }
  CHECK(swapped >= 10);
  WARN(runtime << ": " << asked.size() << " entries looked up, " << swapped << " of them ours");
}

}  // namespace fragshim::test
