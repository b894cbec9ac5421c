// What the library shows to the outside, and what it needs from it.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

std::string dump(const std::vector<std::string>& command) {
  const Outcome outcome = run(command);
  INFO(command[0] << ": " << outcome.errors);
  REQUIRE(outcome.code == 0);
  return outcome.output;
}

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> result;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    result.push_back((*at)[1]);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::string> wanted_exports() {
  std::vector<std::string> names = hooked_names();
  names.push_back("dlsym");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("the library exports dlsym and the hooked entries, and nothing else") {
  std::vector<std::string> exported;
  for (const std::string& line : lines(dump({"nm", "-D", "--defined-only", library()}))) {
    exported.push_back(line.substr(line.rfind(' ') + 1));  // "name@VERSION" were it versioned
  }
  std::sort(exported.begin(), exported.end());
  CHECK(exported == wanted_exports());
}

TEST_CASE("exports.map and the list of hooks agree") {
  std::ifstream file(FRAGSHIM_EXPORTS);
  std::stringstream text;
  text << file.rdbuf();
  CHECK(matches(text.str(), R"(\n\s+([A-Za-z_0-9]+);)") == wanted_exports());
}

TEST_CASE("the library needs the C library alone", "[unsanitized]") {
  const std::set<std::string> allowed{"libc.so.6",
                                      "libm.so.6",
                                      "libdl.so.2",
                                      "libpthread.so.0",
                                      "ld-linux-x86-64.so.2",
                                      "ld-linux-aarch64.so.1"};
  const auto needed = matches(dump({"readelf", "-dW", library()}), R"(\(NEEDED\).*\[(.*)\])");
  CHECK(!needed.empty());
  for (const std::string& name : needed) {
    INFO(name);
    CHECK(allowed.count(name) == 1);
  }
}

TEST_CASE("the library loads with an old C library", "[unsanitized]") {
  // Nothing of ours asks for a later one than 2.17, nor do g++ 12's own libraries, which
  // shim/older_glibc.S sees to. What those of later compilers ask for is not known here.
  int newest = 0;
  for (const std::string& minor :
       matches(dump({"nm", "-D", "--undefined-only", library()}), R"(GLIBC_2\.([0-9]+))")) {
    newest = std::max(newest, std::stoi(minor));
  }
  WARN("the library needs glibc 2." << newest << " as built here");
  CHECK(newest > 0);
#if defined(__GNUC__) && __GNUC__ == 12
  CHECK(newest <= 17);
#else
  CHECK(newest <= 31);
#endif
}

TEST_CASE("the library takes little static TLS") {
  const auto sizes =
      matches(dump({"readelf", "-lW", library()}),
              R"(TLS +0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ (0x[0-9a-f]+))");
  REQUIRE(sizes.size() <= 1);
  if (!sizes.empty()) CHECK(std::stoul(sizes[0], nullptr, 16) <= 256);
}

}  // namespace fragshim::test
