// The conf string's parser on any bytes: it never fails, and gives only values that are allowed.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "config/conf_string.hpp"
#include "config/option_table.hpp"

using namespace fragshim;

namespace {

constexpr std::uint64_t mb = 1 << 20;

void require(bool holds) {
  if (!holds) std::abort();
}

bool whole_mb(std::uint64_t size) { return size % mb == 0; }

void check_ranges(const AllocationConfig& config) {
  constexpr std::uint64_t no_limit = AllocationConfig::no_limit;
  require(config.large_segment_size >= 11 * mb && whole_mb(config.large_segment_size));
  require(config.max_split_size >= config.large_segment_size);
  require(config.max_split_size == no_limit || whole_mb(config.max_split_size));
  require(config.max_non_split_rounding >= config.large_segment_size);
  require(whole_mb(config.max_non_split_rounding));
  require(config.memory_limit == no_limit ||
          (config.memory_limit >= mb && whole_mb(config.memory_limit)));
  require(config.garbage_collection_threshold >= 0 && config.garbage_collection_threshold < 1);
  require(config.per_process_memory_fraction >= 0 && config.per_process_memory_fraction <= 1);
  require(config.policy <= PolicyKind::stitch);
  for (const std::uint32_t divisions : config.roundup_power2_divisions) {
    require(divisions == 0 || std::has_single_bit(divisions));
  }
}

void check_problems(const ConfString& conf) {
  for (const Problem& problem : conf.problems) {
    const std::string line = problem.line();
    require(line.rfind("fragshim: FRAGSHIM_CONF: ", 0) == 0);
    require(line.find('\n') == std::string::npos);
    require(problem.unknown ? find_conf_key(problem.key) == nullptr : !problem.allowed.empty());
  }
}

void check_settings(const ConfString& conf) {
  std::set<std::string> host_side;
  for (const ConfSetting& setting : conf.settings) {
    const Option* const option = find_conf_key(setting.key);
    require(option != nullptr);
    require(!setting.raw.empty() && !setting.value.empty());
    if (option->place == OptionPlace::host_conf) host_side.insert(setting.key);
  }
  for (const std::string& key : host_side) {
    require(std::set<std::string>(conf.host_side.begin(), conf.host_side.end()).count(key) == 1);
  }
}

/// What was taken, written as a conf string again, is taken whole and means the same.
void check_read_back(const ConfString& conf) {
  std::string text;
  for (const ConfSetting& setting : conf.settings) {
    text += setting.key + ":" + setting.raw + ",";
  }
  const ConfString again = parse_conf(text);
  require(again.problems.empty());
  require(again.settings.size() == conf.settings.size());
  require(again.backend == conf.backend);
  require(again.allocation.max_split_size == conf.allocation.max_split_size);
  require(again.allocation.memory_limit == conf.allocation.memory_limit);
  require(again.allocation.policy == conf.allocation.policy);
  require(again.allocation.expandable_segments == conf.allocation.expandable_segments);
  require(again.allocation.garbage_collection_threshold ==
          conf.allocation.garbage_collection_threshold);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const ConfString conf = parse_conf(text);
  check_ranges(conf.allocation);
  check_problems(conf);
  check_settings(conf);
  check_read_back(conf);
  return 0;
}
