#include "core/analyze/replay.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "core/analyze/device_curve.hpp"
#include "core/record/failure.hpp"

namespace fragshim {

namespace {

using Clock = std::chrono::steady_clock;

/// Drives one heap with one trace. Steps come in batches, so that the clock runs over calls of the
/// allocator alone.
class Replayer {
 public:
  explicit Replayer(const ReplayOptions& options) : options_(options), heap_(options) {}

  ReplayResult run(StepSource& source) {
    while (!stopped() && source.next(&batch_)) {
      heap_.prepare(source.slots());
      carry_out();
      if (options_.progress) options_.progress(source.counts().events);
    }
    static_cast<TraceCounts&>(result_) = source.counts();
    summarize();
    return result_;
  }

 private:
  void carry_out() {
    const auto start = Clock::now();
    for (const ReplayStep& step : batch_) {
      if (++steps_ % steps_per_point == 0) curve_.add(step.time_ns, heap_.device_time_us());
      const Address address = heap_.apply(step);
      if (address != 0 || step.action != Action::allocate) continue;
      note_failure(step);
      if (stopped()) break;
    }
    allocator_time_ += Clock::now() - start;
  }

  void note_failure(const ReplayStep& step) {
    const auto start = Clock::now();
    if (result_.first_oom_event < 0) result_.first_oom_event = static_cast<std::int64_t>(step.row);
    if (classified_++ < options_.most_classified) {
      ++result_.failure_classes[std::string(name(classify(heap_.evidence(step)).cause))];
    }
    allocator_time_ -= Clock::now() - start;
  }

  void summarize() {
    const Usage usage = heap_.heap().usage();
    result_.requested_peak = usage.requested_peak;
    result_.allocated_peak = usage.allocated_peak;
    result_.reserved_peak = usage.reserved_peak;
    result_.reserved_end = usage.reserved;
    result_.allocated_end = usage.allocated;
    result_.device_alloc = usage.device_alloc;
    result_.device_free = usage.device_free;
    result_.retries = usage.retries;
    result_.ooms = usage.ooms;
    result_.inactive_split_end = usage.inactive_split;
    result_.device_time_us = heap_.device_time_us();
    const std::int64_t fifth = result_.begin_ns + result_.duration_ns() / 5;
    result_.device_time_late_us = result_.device_time_us - curve_.spent_by(fifth);
    const double ns = std::chrono::duration<double, std::nano>(allocator_time_).count();
    result_.replay_ns_per_event =
        result_.events == 0 ? 0 : ns / static_cast<double>(result_.events);
  }

  bool stopped() const { return options_.stop_at_failure && result_.first_oom_event >= 0; }

  static constexpr std::uint64_t steps_per_point = 64;

  const ReplayOptions& options_;
  ReplayHeap heap_;
  std::vector<ReplayStep> batch_;
  Clock::duration allocator_time_{};
  std::uint64_t classified_ = 0;
  std::uint64_t steps_ = 0;
  DeviceCurve curve_;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay(EventSource& source, const ReplayOptions& options) {
  StepReader steps(source);
  return Replayer(options).run(steps);
}

ReplayResult replay(const StoredSteps& trace, const ReplayOptions& options) {
  StoredSteps::Reader steps(trace);
  return Replayer(options).run(steps);
}

}  // namespace fragshim
