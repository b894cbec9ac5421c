// Every error line: the key, the value, what is allowed, the likely spelling.
#include "config/conf_string.hpp"
#include "config/spelling.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

constexpr std::uint64_t mb = 1 << 20;

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> result;
  for (const Problem& problem : parse_conf(text).problems) result.push_back(problem.line());
  return result;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the line of a bad value", "[config]") {
  CHECK(lines("max_split_size_mb:x") ==
        Lines{"fragshim: FRAGSHIM_CONF: max_split_size_mb: bad value 'x'; allowed: a whole number "
              "of MB, at least large_segment_size_mb (20)"});
  CHECK(lines("expandable_segments:true") ==
        Lines{"fragshim: FRAGSHIM_CONF: expandable_segments: bad value 'true'; allowed: True | "
              "False; did you mean 'True'?"});
  CHECK(lines("backend:cudaMalloc") ==
        Lines{"fragshim: FRAGSHIM_CONF: backend: bad value 'cudaMalloc'; allowed: native | "
              "cudaMallocAsync; did you mean 'cudaMallocAsync'?"});
  CHECK(lines("garbage_collection_threshold:1.0") ==
        Lines{"fragshim: FRAGSHIM_CONF: garbage_collection_threshold: bad value '1.0'; allowed: a "
              "number between 0 and 1, both excluded"});
  CHECK(parse_conf("policy:x", "--conf").problems[0].line() ==
        "fragshim: --conf: policy: bad value 'x'; allowed: auto | native | stitch");
}

TEST_CASE("the line of an unknown key", "[config]") {
  CHECK(lines("max_split_size:128") ==
        Lines{"fragshim: FRAGSHIM_CONF: unknown key 'max_split_size'; did you mean "
              "'max_split_size_mb'?"});
  CHECK(lines("max_split_size_mb=128") ==
        Lines{"fragshim: FRAGSHIM_CONF: unknown key 'max_split_size_mb=128'; did you mean "
              "'max_split_size_mb:128'?"});
  CHECK(lines("MAX_SPLIT_SIZE_MB:128") ==
        Lines{"fragshim: FRAGSHIM_CONF: unknown key 'MAX_SPLIT_SIZE_MB'; did you mean "
              "'max_split_size_mb'?"});
  CHECK(lines("qqqq:1") == Lines{"fragshim: FRAGSHIM_CONF: unknown key 'qqqq'"});
}

TEST_CASE("the line of a separator without a key", "[config]") {
  CHECK(lines(",:policy:native") == Lines{"fragshim: FRAGSHIM_CONF: bad value ',:'; allowed: "
                                          "key:value pairs separated by commas"});
}

TEST_CASE("a line stays one line", "[config]") {
  CHECK(lines("policy:a\x01\x7f") == Lines{"fragshim: FRAGSHIM_CONF: policy: bad value 'a?"
                                           "?'; "
                                           "allowed: auto | native | stitch"});
  const auto cut = lines("policy:" + std::string(1000, 'x'));
  REQUIRE(cut.size() == 1);
  CHECK(cut[0].size() < 300);
}

TEST_CASE("values out of range and of the wrong kind", "[config]") {
  const char* const bad[] = {
      "max_split_size_mb:19",
      "max_split_size_mb:",
      "max_split_size_mb",
      "max_split_size_mb:99999999999999999999",
      "max_split_size_mb:[64]",
      "max_non_split_rounding_mb:19",
      "large_segment_size_mb:10",
      "garbage_collection_threshold:0",
      "garbage_collection_threshold:-0.1",
      "garbage_collection_threshold:nan",
      "garbage_collection_threshold:1e-400",
      "garbage_collection_threshold:half",
      "per_process_memory_fraction:1.1",
      "per_process_memory_fraction:-0.1",
      "per_process_memory_fraction:nan",
      "expandable_segments:1",
      "backend:Native",
      "policy:stich",
      "memory_limit_mb:0",
      "memory_limit_mb:8GB",
      "memory_limit_mb:-1",
      "pinned_use_background_threads:yes",
      "pinned_num_register_threads:many",
      "expandable_segments_reserve:",
      "expandable_segments_reserve_by_class:[a:1",
  };
  for (const std::string text : bad) {
    INFO(text);
    const ConfString conf = parse_conf(text);
    CHECK(conf.problems.size() == 1);
    CHECK(conf.settings.empty());
    CHECK(conf.host_side.empty());
    const AllocationConfig defaults;
    CHECK(conf.allocation.max_split_size == defaults.max_split_size);
    CHECK(conf.allocation.max_non_split_rounding == defaults.max_non_split_rounding);
    CHECK(conf.allocation.large_segment_size == defaults.large_segment_size);
    CHECK(conf.allocation.garbage_collection_threshold == 0);
    CHECK(conf.allocation.per_process_memory_fraction == 1);
    CHECK(conf.allocation.memory_limit == defaults.memory_limit);
    CHECK(conf.allocation.policy == PolicyKind::automatic);
    // The same between two good keys: both still count.
    const ConfString among =
        parse_conf("roundup_power2_divisions:4," + text + ",throw_on_cudamalloc_oom:True");
    CHECK(among.problems.size() == 1);
    CHECK(among.allocation.roundup_power2_divisions[0] == 4);
    CHECK(among.host_side == std::vector<std::string>{"throw_on_cudamalloc_oom"});
  }
}

TEST_CASE("a bad value takes the default though the key had a good one before", "[config]") {
  const ConfString conf = parse_conf("max_split_size_mb:64,policy:stitch,max_split_size_mb:x");
  CHECK(conf.problems.size() == 1);
  CHECK(conf.allocation.max_split_size == AllocationConfig::no_limit);
  REQUIRE(conf.settings.size() == 1);
  CHECK(conf.settings[0].key == "policy");
  CHECK(parse_conf("max_split_size_mb:x,max_split_size_mb:64").allocation.max_split_size ==
        64 * mb);
}

TEST_CASE("a bad value behind a wrong separator loses no other key", "[config]") {
  const ConfString conf = parse_conf("max_split_size_mb:5:policy:stitch");
  CHECK(conf.problems.size() == 1);
  CHECK(conf.problems[0].value == "5");
  CHECK(conf.allocation.policy == PolicyKind::stitch);
  const ConfString missing = parse_conf("max_split_size_mb,policy:stitch");
  CHECK(missing.problems.size() == 1);
  CHECK(missing.problems[0].value.empty());
  CHECK(missing.allocation.policy == PolicyKind::stitch);
  const ConfString unknown = parse_conf("foo:[1,2],bar,policy:stitch");
  CHECK(unknown.problems.size() == 2);
  CHECK(unknown.allocation.policy == PolicyKind::stitch);
}

TEST_CASE("the nearest spelling", "[config]") {
  const std::vector<std::string_view> names = {"allocate", "observe", "off"};
  CHECK(nearest_spelling("allocte", names) == "allocate");
  CHECK(nearest_spelling("lalocate", names) == "allocate");  // a swap is one edit
  CHECK(nearest_spelling("OBSERVE", names) == "observe");
  CHECK(nearest_spelling("obs", names) == "observe");
  CHECK(nearest_spelling("offline", names) == "off");
  CHECK(nearest_spelling("of", names) == "off");
  CHECK(nearest_spelling("on", names).empty());
  CHECK(nearest_spelling("", names).empty());
  CHECK(nearest_spelling("zebra", names).empty());
  CHECK(nearest_spelling(std::string(100000, 'a'), names).empty());
}
