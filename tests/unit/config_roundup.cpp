// roundup_power2_divisions: the scalar, the list, and which sizes an entry is for.
#include "config/conf_string.hpp"
#include "config/roundup_list.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

Divisions divisions(const std::string& value) {
  const ConfString conf = parse_conf("roundup_power2_divisions:" + value);
  INFO(value);
  for (const Problem& problem : conf.problems) FAIL_CHECK(problem.line());
  return conf.allocation.roundup_power2_divisions;
}

Divisions all(std::uint32_t value) {
  Divisions result;
  result.fill(value);
  return result;
}

bool refused(const std::string& value) {
  const ConfString conf = parse_conf("roundup_power2_divisions:" + value + ",policy:stitch");
  return conf.problems.size() == 1 && conf.problems[0].key == "roundup_power2_divisions" &&
         conf.allocation.roundup_power2_divisions == all(0) &&
         conf.allocation.policy == PolicyKind::stitch;
}

}  // namespace

TEST_CASE("a number of divisions is for all sizes", "[config]") {
  CHECK(divisions("8") == all(8));
  CHECK(divisions("1") == all(1));
  CHECK(divisions("4x") == all(4));
}

TEST_CASE("a list entry K is for sizes from K to 2K megabytes", "[config]") {
  // The value in PyTorch's documentation. 256 to 512 MB has 1 division, not 2.
  const Divisions documented = divisions("[256:1,512:2,1024:4,>:8]");
  const Divisions expected = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
  CHECK(documented == expected);
  // PyTorch's own unit test.
  const Divisions tested = divisions("[64:8,128:2,256:4,512:2,1024:4,>:1]");
  const Divisions tested_expected = {8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1};
  CHECK(tested == tested_expected);
}

TEST_CASE("gaps of a list are 0, and the first entry reaches down", "[config]") {
  const Divisions gaps = divisions("[4:2,32:4]");
  const Divisions expected = {2, 2, 2, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  CHECK(gaps == expected);
  CHECK(divisions("[]") == all(0));
  CHECK(divisions("[1:0]") == all(0));
  const Divisions only_above = divisions("[>:4]");
  CHECK(only_above[0] == 0);
  CHECK(only_above[1] == 4);
  CHECK(only_above[15] == 4);
}

TEST_CASE("boundaries beyond the last interval count for it", "[config]") {
  const Divisions huge = divisions("[1048576:4,>:2]");
  CHECK(huge == all(4));
  CHECK(divisions("[32768:2,>:4]") == all(2));
  // More divisions than any size has; PyTorch keeps 64 bits of them.
  CHECK(divisions("1099511627776")[0] == 1u << 31);
}

TEST_CASE("lists tolerate what PyTorch tolerates", "[config]") {
  const Divisions expected = divisions("[256:1,512:2]");
  CHECK(divisions("[ 256 : 1 , 512 : 2 ]") == expected);
  CHECK(divisions("[256,1:512,2]") == expected);
  CHECK(divisions("[256:1,512:2,]") == expected);
  CHECK(divisions("[256MB:1,512MB:2x]") == expected);
}

TEST_CASE("a second value of the key changes what it names", "[config]") {
  const Divisions twice = divisions("4,roundup_power2_divisions:[2:8]");
  CHECK(twice[0] == 8);
  CHECK(twice[1] == 8);
  CHECK(twice[2] == 4);
}

TEST_CASE("bad divisions lose no other key", "[config]") {
  CHECK(refused(""));
  CHECK(refused("0"));  // a list may say 0, a number may not
  CHECK(refused("3"));
  CHECK(refused("x"));
  CHECK(refused("[256:3]"));
  CHECK(refused("[3:4]"));
  CHECK(refused("[0:4]"));
  CHECK(refused("[256]"));
  CHECK(refused("[256:1,512:x]"));
  CHECK(refused("[256:1"));  // no closing bracket
  CHECK(refused("["));
  CHECK(refused("[256:1 512:2]"));
}
