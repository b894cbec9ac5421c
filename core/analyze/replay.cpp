#include "core/analyze/replay.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "core/alloc/policy.hpp"
#include "core/analyze/address_slots.hpp"
#include "core/analyze/driver_layout.hpp"
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

/// Drives one heap with one trace. Events are read and resolved in batches, so that the clock runs
/// over calls of the allocator alone.
class Replayer {
 public:
  explicit Replayer(const ReplayOptions& options)
      : options_(options),
        allowed_(allowed_bytes(options)),
        budget_(allowed_),
        limited_(placed_, budget_),
        heap_(make_heap(limited_, options.policy, options.config, allowed_)) {
    batch_.reserve(batch_size + 1);
  }

  ReplayResult run(EventSource& source) {
    while (read_batch(source)) {
      blocks_.resize(slots_.bound());
      carry_out();
      if (options_.progress) options_.progress(result_.events);
    }
    result_.incomplete = source.incomplete();
    summarize();
    return result_;
  }

 private:
  static constexpr std::size_t batch_size = 4096;
  static constexpr std::uint64_t most_classified = 1000;  // each one walks every block

  /// An event whose address has been replaced by a slot.
  struct Step {
    Action action;
    AddressSlots::Slot slot;
    Bytes size;
    StreamId stream;
    std::uint64_t row;
  };

  bool read_batch(EventSource& source) {
    batch_.clear();
    Event event;
    while (batch_.size() < batch_size && source.next(&event)) {
      ++result_.events;
      resolve(event);
    }
    return !batch_.empty();
  }

  void resolve(const Event& event) {
    switch (event.action) {
      case Action::allocate:
        if (event.address != 0 && event.size != 0) resolve_allocation(event);
        break;
      case Action::free:
        resolve_free(event);
        break;
      case Action::trim:
        batch_.push_back({Action::trim, 0, 0, 0, result_.events});
        break;
      case Action::allocate_failure:
        ++result_.recorded_failures;
        break;
      case Action::none:
        break;
    }
  }

  void resolve_allocation(const Event& event) {
    auto slot = slots_.add(event.address);
    if (!slot) {
      ++result_.implied_frees;
      resolve_free(event);
      slot = slots_.add(event.address);
    }
    batch_.push_back({Action::allocate, *slot, event.size, event.stream, result_.events});
  }

  void resolve_free(const Event& event) {
    const auto slot = slots_.remove(event.address);
    if (slot) {
      batch_.push_back({Action::free, *slot, 0, event.stream, result_.events});
    } else if (event.address != 0) {
      ++result_.unmatched_frees;
    }
  }

  void carry_out() {
    const auto start = Clock::now();
    for (const Step& step : batch_) {
      if (step.action == Action::allocate) {
        const Grant grant = heap_->allocate(step.size, step.stream);
        blocks_[step.slot] = grant.address;
        if (!grant.status.ok()) note_failure(step);
      } else if (step.action == Action::free) {
        if (blocks_[step.slot] != 0) heap_->free(blocks_[step.slot], step.stream);
      } else {
        heap_->trim(0);
      }
    }
    allocator_time_ += Clock::now() - start;
  }

  void note_failure(const Step& step) {
    const auto start = Clock::now();
    blocks_[step.slot] = 0;
    if (result_.first_oom_event < 0) result_.first_oom_event = static_cast<std::int64_t>(step.row);
    if (classified_++ < most_classified) ++result_.failure_classes[std::string(name(cause(step)))];
    allocator_time_ -= Clock::now() - start;
  }

  /// The capacity is taken for the card: nobody else is on it.
  FailureClass cause(const Step& step) const {
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

  const ReplayOptions& options_;
  const Bytes allowed_;
  SimulatedDevice device_;
  DriverLayoutDevice placed_{device_};
  Budget budget_;
  LimitedDevice limited_;
  std::unique_ptr<Heap> heap_;
  AddressSlots slots_;
  std::vector<Address> blocks_;  // by slot: where this heap put the block; 0: nowhere
  std::vector<Step> batch_;
  Clock::duration allocator_time_{};
  std::uint64_t classified_ = 0;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay(EventSource& source, const ReplayOptions& options) {
  return Replayer(options).run(source);
}

}  // namespace fragshim
