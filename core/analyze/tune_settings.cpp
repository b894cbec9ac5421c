#include "core/analyze/tune_settings.hpp"

#include <algorithm>

#include "config/conf_string.hpp"

namespace fragshim {

namespace {

using Texts = std::vector<std::string>;

std::string with(const char* key, const std::string& value) {
  return std::string(key) + ":" + value;
}

Texts each(const char* key, const Texts& values) {
  Texts out;
  for (const std::string& value : values) out.push_back(with(key, value));
  return out;
}

/// Every one of `left` with every one of `right`.
Texts pairs(const Texts& left, const Texts& right) {
  Texts out;
  for (const std::string& a : left) {
    for (const std::string& b : right) out.emplace_back(a).append(",").append(b);
  }
  return out;
}

/// Powers of two, the mildest first, and the ladder of folklore: a sixth of the memory, 512 more
/// and less.
Texts split_limits(Bytes capacity) {
  std::vector<Bytes> limits = {20, 32, 64, 128, 256, 512, 1024, 2048};
  const Bytes sixth = capacity / 6 / MiB;
  for (const Bytes rung : {sixth, sixth + 512, sixth > 512 ? sixth - 512 : 0}) {
    if (rung >= 20) limits.push_back(rung);
  }
  std::sort(limits.rbegin(), limits.rend());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  Texts out;
  for (const Bytes limit : limits) out.push_back(std::to_string(limit));
  return each("max_split_size_mb", out);
}

void append(Texts* to, const Texts& more) { to->insert(to->end(), more.begin(), more.end()); }

Texts pytorch_confs(Bytes capacity, bool limited) {
  const Texts splits = split_limits(capacity);
  const Texts some_splits = each("max_split_size_mb", {"1024", "512", "256", "128", "64"});
  const Texts large_splits = each("max_split_size_mb", {"1024", "512", "256"});
  const Texts slacks = each("max_non_split_rounding_mb", {"64", "256", "1024"});
  const Texts divisions = each("roundup_power2_divisions", {"8", "4", "2"});
  const Texts thresholds = each("garbage_collection_threshold", {"0.9", "0.8", "0.7", "0.6"});
  const Texts large = each("large_segment_size_mb", {"32", "64", "12", "128", "256"});
  const Texts some_large = each("large_segment_size_mb", {"64", "128"});
  const Texts expandable = {"expandable_segments:True"};
  Texts out = {""};
  append(&out, expandable);
  append(&out, splits);
  append(&out, divisions);
  append(&out, large);
  if (limited) append(&out, thresholds);
  append(&out, pairs(expandable, divisions));
  append(&out, pairs(expandable, some_large));
  append(&out, pairs(some_splits, slacks));
  append(&out, pairs(some_splits, divisions));
  append(&out, pairs(large_splits, some_large));
  append(&out, pairs(divisions, some_large));
  if (!limited) return out;
  const Texts two_thresholds = each("garbage_collection_threshold", {"0.8", "0.6"});
  append(&out, pairs(two_thresholds, some_splits));
  append(&out, pairs(two_thresholds, divisions));
  append(&out, pairs(two_thresholds, some_large));
  return out;
}

Texts fragshim_confs() {
  Texts out = {""};
  append(&out, each("roundup_power2_divisions", {"8", "4", "2"}));
  append(&out, each("max_split_size_mb", {"2048", "512", "128"}));
  return out;
}

}  // namespace

std::vector<TuneSetting> tune_settings(Bytes capacity, bool limited) {
  std::vector<TuneSetting> out;
  for (std::string& conf : pytorch_confs(capacity, limited)) {
    const AllocationConfig config = parse_conf(conf).allocation;
    out.push_back({TunedAllocator::pytorch, std::move(conf), config, PolicyKind::native});
  }
  for (std::string& conf : fragshim_confs()) {
    const AllocationConfig config = parse_conf(conf).allocation;
    out.push_back({TunedAllocator::fragshim, std::move(conf), config, PolicyKind::stitch});
  }
  return out;
}

}  // namespace fragshim
