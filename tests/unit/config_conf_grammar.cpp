// PyTorch's grammar: what its parser takes, and what every key then means.
#include "config/conf_string.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

constexpr std::uint64_t mb = 1 << 20;
constexpr std::uint64_t clamped = ~std::uint64_t{0} / mb * mb;

// The settings of a conf string that must have no problem.
AllocationConfig good(std::string_view text) {
  const ConfString conf = parse_conf(text);
  INFO(text);
  for (const Problem& problem : conf.problems) FAIL_CHECK(problem.line());
  return conf.allocation;
}

std::vector<std::string> keys_of(const ConfString& conf) {
  std::vector<std::string> keys;
  for (const ConfSetting& setting : conf.settings) keys.push_back(setting.key);
  return keys;
}

}  // namespace

TEST_CASE("an empty conf string leaves PyTorch's defaults", "[config]") {
  for (const char* text : {"", "  \t\n "}) {
    const ConfString conf = parse_conf(text);
    CHECK(conf.problems.empty());
    CHECK(conf.settings.empty());
    CHECK(conf.backend == Backend::unset);
    CHECK(conf.allocation.max_split_size == AllocationConfig::no_limit);
    CHECK(conf.allocation.max_non_split_rounding == 20 * mb);
    CHECK(conf.allocation.large_segment_size == 20 * mb);
    CHECK(conf.allocation.garbage_collection_threshold == 0);
    CHECK(conf.allocation.per_process_memory_fraction == 1);
    CHECK(conf.allocation.memory_limit == AllocationConfig::no_limit);
    CHECK_FALSE(conf.allocation.expandable_segments);
    CHECK(conf.allocation.policy == PolicyKind::automatic);
    for (const auto divisions : conf.allocation.roundup_power2_divisions) CHECK(divisions == 0);
  }
}

TEST_CASE("every key sets its own setting", "[config]") {
  const ConfString conf = parse_conf(
      "max_split_size_mb:128,max_non_split_rounding_mb:40,garbage_collection_threshold:0.8,"
      "expandable_segments:True,large_segment_size_mb:32,per_process_memory_fraction:0.5,"
      "backend:cudaMallocAsync,policy:stitch,memory_limit_mb:4096,roundup_power2_divisions:4");
  CHECK(conf.problems.empty());
  CHECK(conf.allocation.max_split_size == 128 * mb);
  CHECK(conf.allocation.max_non_split_rounding == 40 * mb);
  CHECK(conf.allocation.garbage_collection_threshold == 0.8);
  CHECK(conf.allocation.expandable_segments);
  CHECK(conf.allocation.large_segment_size == 32 * mb);
  CHECK(conf.allocation.per_process_memory_fraction == 0.5);
  CHECK(conf.allocation.policy == PolicyKind::stitch);
  CHECK(conf.allocation.memory_limit == 4096 * mb);
  CHECK(conf.allocation.roundup_power2_divisions[15] == 4);
  CHECK(conf.backend == Backend::cuda_malloc_async);
  CHECK(conf.settings.size() == 10);
  CHECK(conf.settings[0].key == "max_split_size_mb");
  CHECK(conf.settings[9].key == "roundup_power2_divisions");
}

TEST_CASE("choices", "[config]") {
  CHECK(parse_conf("backend:native").backend == Backend::native);
  CHECK(good("policy:auto").policy == PolicyKind::automatic);
  CHECK(good("policy:native").policy == PolicyKind::native);
  CHECK_FALSE(good("expandable_segments:True,expandable_segments:False").expandable_segments);
}

TEST_CASE("whitespace is dropped wherever it stands", "[config]") {
  CHECK(good(" max_split\t_size_mb :\n 1 2 8 ,\r policy\v:\fstitch ").max_split_size == 128 * mb);
  CHECK(good("max_split_size_mb:128, policy:stitch").policy == PolicyKind::stitch);
}

TEST_CASE("numbers are read as std::stoull and std::stod read them", "[config]") {
  CHECK(good("max_split_size_mb:100MB").max_split_size == 100 * mb);
  CHECK(good("max_split_size_mb:128.5").max_split_size == 128 * mb);
  CHECK(good("max_split_size_mb:+64").max_split_size == 64 * mb);
  CHECK(good("max_split_size_mb:00064").max_split_size == 64 * mb);
  CHECK(good("max_split_size_mb:-5").max_split_size == clamped);
  CHECK(good("max_split_size_mb:18446744073709551615").max_split_size == clamped);
  CHECK(good("max_non_split_rounding_mb:-1").max_non_split_rounding == clamped);
  CHECK(good("garbage_collection_threshold:8e-1").garbage_collection_threshold == 0.8);
  CHECK(good("garbage_collection_threshold:.5x").garbage_collection_threshold == 0.5);
  CHECK(good("garbage_collection_threshold:0x1p-1").garbage_collection_threshold == 0.5);
  CHECK(good("per_process_memory_fraction:0").per_process_memory_fraction == 0);
  CHECK(good("per_process_memory_fraction:1").per_process_memory_fraction == 1);
}

TEST_CASE("the setting in force is told beside what was given", "[config]") {
  const ConfString conf = parse_conf("max_split_size_mb: 100 MB,garbage_collection_threshold:.80");
  REQUIRE(conf.settings.size() == 2);
  CHECK(conf.settings[0].raw == "100MB");
  CHECK(conf.settings[0].value == "100");
  CHECK(conf.settings[1].raw == ".80");
  CHECK(conf.settings[1].value == "0.8");
}

TEST_CASE("any separator passes where another belongs", "[config]") {
  const AllocationConfig comma = good("max_split_size_mb,128:garbage_collection_threshold]0.8");
  CHECK(comma.max_split_size == 128 * mb);
  CHECK(comma.garbage_collection_threshold == 0.8);
  CHECK(good("max_split_size_mb:128,").max_split_size == 128 * mb);
  // Even a word may stand there: PyTorch steps over one token without looking at it.
  CHECK(good("max_split_size_mb:128[policy:stitch").policy == PolicyKind::stitch);
}

TEST_CASE("the last of equal keys counts", "[config]") {
  const ConfString conf = parse_conf("max_split_size_mb:64,policy:native,max_split_size_mb:256");
  CHECK(conf.problems.empty());
  CHECK(conf.allocation.max_split_size == 256 * mb);
  CHECK(keys_of(conf) ==
        std::vector<std::string>{"max_split_size_mb", "policy", "max_split_size_mb"});
}

TEST_CASE("large_segment_size_mb is read first, wherever it stands", "[config]") {
  CHECK(good("large_segment_size_mb:64").max_non_split_rounding == 64 * mb);
  CHECK(good("max_split_size_mb:12,large_segment_size_mb:11").max_split_size == 12 * mb);
  CHECK(good("max_non_split_rounding_mb:11,large_segment_size_mb:11").max_non_split_rounding ==
        11 * mb);
  const ConfString below = parse_conf("max_split_size_mb:63,large_segment_size_mb:64");
  REQUIRE(below.problems.size() == 1);
  CHECK(below.problems[0].key == "max_split_size_mb");
  // The last one decides what the others are measured by.
  const ConfString twice =
      parse_conf("large_segment_size_mb:11,max_split_size_mb:12,large_segment_size_mb:64");
  CHECK(twice.problems.size() == 1);
  CHECK(twice.allocation.large_segment_size == 64 * mb);
}

TEST_CASE("keys for the host side are accepted and told", "[config]") {
  const ConfString conf = parse_conf(
      "pinned_use_background_threads:True,pinned_use_cuda_host_register:False,"
      "pinned_use_hip_host_register:True,pinned_num_register_threads:8,"
      "pinned_reserve_segment_size_mb:64,pinned_max_round_threshold_mb:64,"
      "pinned_max_cached_size_mb:64,pinned_free_catch_all:True,release_lock_on_cudamalloc:True,"
      "release_lock_on_hipmalloc:True,graph_capture_record_stream_reuse:True,"
      "throw_on_cudamalloc_oom:True,expandable_segments_reserve:40G,"
      "expandable_segments_reserve_by_class:[a:0.5,b:8G],max_split_size_mb:21,"
      "pinned_num_register_threads:4");
  CHECK(conf.problems.empty());
  CHECK(conf.host_side.size() == 14);  // each once
  CHECK(conf.settings.size() == 16);
  CHECK(conf.settings[13].raw == "[a:0.5,b:8G]");
  CHECK(conf.allocation.max_split_size == 21 * mb);
  CHECK_FALSE(conf.allocation.expandable_segments);
}
