// Real CUDA runtimes, old and new, shared and static, on drivers old and new: at their first call
// they look everything up. They do not start on the stand-in driver, but what they keep shows what
// they were given. Run for one runtime, FRAGSHIM_TEST_CUDART: a library, or a program that one is
// linked into; on one driver, FRAGSHIM_TEST_DRIVER: a version, or empty for the newest.
#include <cstdlib>
#include <filesystem>
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

std::string setting(const char* variable) {
  const char* const value = std::getenv(variable);
  return value ? value : "";
}

}  // namespace

TEST_CASE("a real CUDA runtime gets our function for every hooked entry", "[.cudart]") {
  const std::string runtime = setting("FRAGSHIM_TEST_CUDART");
  const std::string version = setting("FRAGSHIM_TEST_DRIVER");
  std::vector<std::string> command{runtime};
  if (runtime.find(".so") != std::string::npos) command = {probe("cudart"), runtime};
  if (standin_folder().empty() || !std::filesystem::exists(command.back())) {
    WARN("skipped: no " << command.back() << ", or no stand-in driver");
    return;
  }
  const std::string driver = standin_folder() + (version.empty() ? "" : "-" + version);
  // Without our library: the driver is preloaded, or the runtime would unload it as it gives up.
  const Outcome plain = run(command, {{"LD_LIBRARY_PATH", driver},
                                      {"LD_PRELOAD", preload_list({driver + "/libcuda.so.1"})}});
  const Outcome outcome = run_preloaded(command, {{"LD_LIBRARY_PATH", driver}});
  INFO(outcome.errors);
  REQUIRE(plain.code == 0);
  REQUIRE(outcome.code == 0);
  const Names asked = kept(plain.output)["libcuda.so.1"];
  CHECK(asked.size() > 100);

  const auto hooked_list = hooked_names();
  const Names hooked(hooked_list.begin(), hooked_list.end());
  auto found = kept(outcome.output);
  Names wanted_ours;
  Names wanted_real;
  for (const std::string& name : asked)
    (hooked.count(name) ? wanted_ours : wanted_real).insert(name);
  found["libfragshim.so"].erase("dlsym");  // by which it looks up
  CHECK(found["libfragshim.so"] == wanted_ours);
  CHECK(found["libcuda.so.1"] == wanted_real);
  CHECK(wanted_ours.size() >= 10);
  WARN(runtime << ": " << asked.size() << " entries looked up, " << wanted_ours.size()
               << " of them ours");
}

}  // namespace fragshim::test
