// Every look-up in a driver, by dlsym and by both forms of cuGetProcAddress: with the library, the
// hooked entries are ours and every other answer is what it is without.
#include <algorithm>
#include <set>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

/// What a driver's library exports, less what is not the driver's.
std::vector<std::string> driver_names(const std::string& folder) {
  const Outcome outcome = run({"nm", "-D", "--defined-only", folder + "/libcuda.so.1"});
  REQUIRE(outcome.code == 0);
  std::vector<std::string> names;
  for (const std::string& line : lines(outcome.output)) {
    std::string name = line.substr(line.rfind(' ') + 1);
    name = name.substr(0, name.find('@'));
    if (name.compare(0, 2, "cu") == 0) names.push_back(name);
  }
  return names;
}

std::vector<std::string> look_up(const std::string& folder, Variables variables) {
  std::vector<std::string> command{probe("table")};
  for (const std::string& name : driver_names(folder)) command.push_back(name);
  variables["LD_LIBRARY_PATH"] = folder;
  const Outcome outcome = run(command, variables);
  INFO(outcome.errors);
  REQUIRE(outcome.code == 0);
  return lines(outcome.output);
}

/// A line of the run without the library, as it must read with it.
std::string hooked(const std::string& line, const std::set<std::string>& hooks) {
  const auto space = line.rfind(' ');
  const auto colon = line.rfind(':');
  if (colon == std::string::npos || colon < space) return line;
  const std::string name = line.substr(colon + 1);
  return hooks.count(name) ? line.substr(0, space + 1) + "libfragshim.so:" + name : line;
}

/// Compares every line; returns how many answers were ours.
int compare(const std::string& folder) {
  const auto names = hooked_names();
  const std::set<std::string> hooks(names.begin(), names.end());
  const auto plain = look_up(folder, {});
  const auto shimmed = look_up(folder, {{"LD_PRELOAD", preload_list()}});
  REQUIRE(plain.size() == shimmed.size());
  int ours = 0;
  int wrong = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::string wanted = hooked(plain[i], hooks);
    if (wanted != plain[i]) ++ours;
    if (shimmed[i] != wanted && ++wrong <= 10) {
      UNSCOPED_INFO("seen " << shimmed[i] << ", not " << wanted);
    }
  }
  CHECK(wrong == 0);
  return ours;
}

}  // namespace

TEST_CASE("a driver that forwards to another library") {
  const std::string kind = GENERATE("forwarding", "old");
  INFO(kind);
  CHECK(compare(probe(kind)) > 100);
}

TEST_CASE("a driver that looks itself up and calls what it exports within cuInit") {
  if (standin_folder().empty()) return;
  for (const std::string mode : {"allocate", "observe", "off"}) {
    for (const std::string version : {"", "-12.2", "-11.4"}) {
      const Outcome outcome =
          run_preloaded({probe("faults")}, {{"LD_LIBRARY_PATH", standin_folder() + version},
                                            {"STANDIN_REENTER", "1"},
                                            {"FRAGSHIM_MODE", mode},
                                            {"FRAGSHIM_LOG", "off"},
                                            {"FRAGSHIM_QUIET", "1"}});
      INFO(mode << version);
      CHECK(outcome.code == 0);
      CHECK(outcome.errors == "");
      CHECK(outcome.output == "refused 0\nmissing 0\n");
    }
  }
}

TEST_CASE("in mode off nothing is swapped") {
  const std::string folder = probe("forwarding");
  CHECK(look_up(folder, {}) ==
        look_up(folder, {{"LD_PRELOAD", preload_list()}, {"FRAGSHIM_MODE", "off"}}));
}

TEST_CASE("the stand-in driver's whole table, and those of its older versions") {
  if (standin_folder().empty()) {
    WARN("skipped: the stand-in driver was not built");
    return;
  }
  const auto exported = driver_names(standin_folder());
  for (const std::string& name : hooked_names()) {
    INFO(name);
    CHECK(std::count(exported.begin(), exported.end(), name) == 1);
  }
  CHECK(compare(standin_folder()) > 1000);
  // Before CUDA 12.5, 12.0, 11.3 and 11.2: one entry less, one form of cuGetProcAddress, none of
  // it, no stream-ordered memory.
  CHECK(compare(standin_folder() + "-12.2") > 1000);
  CHECK(compare(standin_folder() + "-11.4") > 500);
  CHECK(compare(standin_folder() + "-11.2") > 20);
  CHECK(compare(standin_folder() + "-11.0") > 10);
}

}  // namespace fragshim::test
