// Failures to order: which calls of a simulated device fail, and how.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/device.hpp"

namespace fragshim {

/// The calls of a Device, for counting and for failing. `any` stands for all of them in a rule.
enum class Call : std::uint8_t {
  allocate_segment,
  release_segment,
  reserve,
  unreserve,
  create,
  destroy,
  map,
  unmap,
  record,
  query,
  wait,
  stream_wait,
  synchronize,
  memory_info,
  any,
};
inline constexpr std::size_t call_kinds = static_cast<std::size_t>(Call::any);

/// Counts calls and says which of them fail. Not thread-safe.
class Faults {
 public:
  /// Decides one call: `count` is its number among those of its kind, from 1.
  using Decide = std::function<Status(Call call, std::uint64_t count)>;

  /// The `nth` call from now on (1: the next one) of that kind fails, once.
  void fail_next(Call call, std::uint64_t nth, Status status) {
    rules_.push_back({call, status, counted(call) + nth, 0});
  }
  /// Every `n`th call of that kind from now on fails; n > 0.
  void fail_every(Call call, std::uint64_t n, Status status) {
    rules_.push_back({call, status, counted(call) + n, n});
  }
  void decide_by(Decide decide) { decide_ = std::move(decide); }
  void clear() {
    rules_.clear();
    decide_ = nullptr;
  }

  /// Counts a call; anything but ok means that it must fail so, without doing anything.
  Status enter(Call call) {
    const std::uint64_t count = ++counts_[static_cast<std::size_t>(call)];
    ++total_;
    Status verdict;
    for (Rule& rule : rules_) {
      if (rule.call != call && rule.call != Call::any) continue;
      if (counted(rule.call) != rule.at) continue;
      if (rule.period != 0) rule.at += rule.period;
      verdict = rule.status;
    }
    if (verdict.ok() && decide_) verdict = decide_(call, count);
    return verdict;
  }

  /// Calls of a kind (or `any`) so far, failed ones included.
  std::uint64_t counted(Call call) const {
    return call == Call::any ? total_ : counts_[static_cast<std::size_t>(call)];
  }

 private:
  struct Rule {
    Call call;
    Status status;
    std::uint64_t at;      // the count at which it strikes
    std::uint64_t period;  // 0: once
  };

  std::array<std::uint64_t, call_kinds> counts_{};
  std::uint64_t total_ = 0;
  std::vector<Rule> rules_;
  Decide decide_;
};

}  // namespace fragshim
