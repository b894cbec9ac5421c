// The settings that tune tries: all of them valid, PyTorch's options and folklore among them.
#include "core/analyze/tune_settings.hpp"

#include <algorithm>
#include <set>

#include "config/conf_string.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

bool has(const std::vector<TuneSetting>& settings, const std::string& conf,
         TunedAllocator allocator = TunedAllocator::pytorch) {
  return std::any_of(settings.begin(), settings.end(), [&](const TuneSetting& setting) {
    return setting.conf == conf && setting.allocator == allocator;
  });
}

}  // namespace

TEST_CASE("every setting to try is valid and tried once") {
  std::set<std::pair<TunedAllocator, std::string>> seen;
  for (const Bytes capacity : {MiB, GiB, 24 * GiB, 141 * GiB}) {
    seen.clear();
    for (const TuneSetting& setting : tune_settings(capacity, true)) {
      INFO(setting.conf);
      CHECK(parse_conf(setting.conf).problems.empty());
      CHECK(seen.insert({setting.allocator, setting.conf}).second);
    }
    CHECK(seen.size() >= 90);
  }
}

TEST_CASE("the ladder of split limits stands around a sixth of the memory") {
  const auto settings = tune_settings(24 * GiB, true);
  CHECK(has(settings, "max_split_size_mb:4096"));
  CHECK(has(settings, "max_split_size_mb:3584"));
  CHECK(has(settings, "max_split_size_mb:4608"));
  CHECK_FALSE(has(tune_settings(16 * GiB, true), "max_split_size_mb:4096"));
}

TEST_CASE("each allocator's default comes first") {
  const auto settings = tune_settings(24 * GiB, true);
  CHECK(settings.front().conf.empty());
  CHECK(settings.front().policy == PolicyKind::native);
  const auto shim = std::find_if(settings.begin(), settings.end(), [](const auto& setting) {
    return setting.allocator == TunedAllocator::fragshim;
  });
  REQUIRE(shim != settings.end());
  CHECK(shim->conf.empty());
  CHECK(shim->policy == PolicyKind::stitch);
}

TEST_CASE("garbage collection is tried only where there is a limit") {
  CHECK(has(tune_settings(24 * GiB, true), "garbage_collection_threshold:0.6"));
  for (const TuneSetting& setting : tune_settings(24 * GiB, false)) {
    CHECK(setting.config.garbage_collection_threshold == 0);
  }
}
