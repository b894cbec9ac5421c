#include "core/analyze/replay.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "core/alloc/policy.hpp"
#include "core/analyze/make_heap.hpp"
#include "core/device/limited.hpp"
#include "core/device/simulated.hpp"
#include "core/record/failure.hpp"

namespace fragshim {

namespace {

using Clock = std::chrono::steady_clock;

/// What the configuration leaves of the capacity.
Bytes allowed_bytes(const ReplayOptions& options) {
  const double fraction = options.config.per_process_memory_fraction;
  Bytes allowed = options.capacity;
  if (allowed != unlimited && fraction < 1) {
    allowed = static_cast<Bytes>(static_cast<double>(allowed) * fraction);
  }
  return std::min(allowed, options.config.memory_limit);
}

/// Drives one heap with one trace. Steps come in batches, so that the clock runs over calls of the
/// allocator alone.
class Replayer {
 public:
  explicit Replayer(const ReplayOptions& options)
      : options_(options),
        allowed_(allowed_bytes(options)),
        budget_(allowed_),
        limited_(device_, budget_),
        heap_(make_heap(limited_, options.policy, options.config, allowed_)) {}

  ReplayResult run(StepSource& source) {
    while (!stopped() && source.next(&batch_)) {
      blocks_.resize(source.slots());
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
      if (step.action == Action::allocate) {
        const Grant grant = heap_->allocate(step.size, step.stream);
        blocks_[step.slot] = grant.address;
        if (!grant.status.ok()) note_failure(step);
        if (stopped()) break;
      } else if (step.action == Action::free) {
        if (blocks_[step.slot] != 0) heap_->free(blocks_[step.slot], step.stream);
      } else {
        heap_->trim(0);
      }
    }
    allocator_time_ += Clock::now() - start;
  }

  void note_failure(const ReplayStep& step) {
    const auto start = Clock::now();
    blocks_[step.slot] = 0;
    if (result_.first_oom_event < 0) result_.first_oom_event = static_cast<std::int64_t>(step.row);
    if (classified_++ < options_.most_classified)
      ++result_.failure_classes[std::string(name(cause(step)))];
    allocator_time_ -= Clock::now() - start;
  }

  /// The capacity is taken for the card: nobody else is on it.
  FailureClass cause(const ReplayStep& step) const {
    FailureEvidence evidence = gather_evidence(*heap_, step.size, step.stream);
    evidence.rounded = policy::round_size(options_.config, step.size);
    evidence.segment_size = policy::segment_size(options_.config, evidence.rounded);
    evidence.held = evidence.usage.reserved;
    if (allowed_ != unlimited) {
      evidence.device_total = allowed_;
      evidence.device_free = allowed_ - std::min(allowed_, evidence.held);
    }
    return classify(evidence).cause;
  }

  void summarize() {
    const Usage usage = heap_->usage();
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
    result_.device_time_us = device_.time_us();
    const double ns = std::chrono::duration<double, std::nano>(allocator_time_).count();
    result_.replay_ns_per_event =
        result_.events == 0 ? 0 : ns / static_cast<double>(result_.events);
  }

  bool stopped() const { return options_.stop_at_failure && result_.first_oom_event >= 0; }

  const ReplayOptions& options_;
  const Bytes allowed_;
  SimulatedDevice device_;
  Budget budget_;
  LimitedDevice limited_;
  std::unique_ptr<Heap> heap_;
  std::vector<Address> blocks_;  // by slot: where this heap put the block; 0: nowhere
  std::vector<ReplayStep> batch_;
  Clock::duration allocator_time_{};
  std::uint64_t classified_ = 0;
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
