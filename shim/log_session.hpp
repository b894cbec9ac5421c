// One process's log from its first record to its last: what has been opened, said and seen.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shim/log_file.hpp"
#include "shim/log_records.hpp"
#include "shim/log_summary.hpp"
#include "shim/log_totals.hpp"

namespace fragshim::log {

/// Keeps a program that fails or trims in a loop from filling the disk: the first thousand records
/// of a type are written, then one an interval.
class RecordRate {
 public:
  /// Nothing: leave this record out. Else how many were left out before it.
  std::optional<std::uint64_t> admit(std::int64_t now_ns, std::int64_t interval_ns);

 private:
  static constexpr std::uint64_t burst = 1000;
  std::uint64_t written_ = 0;
  std::uint64_t skipped_ = 0;
  std::int64_t last_ns_ = 0;
};

/// Every function may throw std::bad_alloc and is called by any thread with no lock held. The
/// session's own lock covers its tables, never a write or a call to the source.
class Session {
 public:
  bool finished() const noexcept { return finished_.load(std::memory_order_relaxed); }

  void start(const DeviceInfo& device);
  void sample(HeapSource& source);
  void retire(const HeapView& view);
  void failure(const FailureReport& report);
  void retry(const RetryReport& report);
  void trim(const TrimReport& report);
  void warning(std::string_view code, std::string_view text);
  /// Once; does nothing where nothing was started. `source` may be null.
  void finish(HeapSource* source);

 private:
  using Lock = std::lock_guard<std::mutex>;
  using Warning = std::pair<std::string, std::string>;

  bool has_started(int device) const noexcept;
  std::string open();
  void write(const std::string& line) noexcept;
  void observe(const std::vector<HeapSample>& samples);
  double seconds_open() const noexcept;
  void write_exit_records(const std::vector<HeapTotal>& totals);
  SummaryFacts summary_facts(std::vector<HeapTotal> totals);
  std::optional<std::uint64_t> admit(RecordRate& rate);

  std::mutex mutex_;
  std::atomic<std::uint64_t> started_{0};  // a bit for each device
  std::atomic<LineLogger*> logger_{nullptr};
  std::atomic<bool> finished_{false};
  bool opened_ = false;
  std::int64_t start_ns_ = 0;  // by the clock that never jumps
  std::string path_;
  std::vector<Warning> early_warnings_;     // said before there was a log
  std::vector<std::string> warning_codes_;  // said already
  Totals totals_;
  RecordRate failure_rate_;
  RecordRate retry_rate_;
  RecordRate trim_rate_;
  std::array<std::uint64_t, failure_classes> failures_{};
};

}  // namespace fragshim::log
