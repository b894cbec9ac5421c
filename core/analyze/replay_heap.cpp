#include "core/analyze/replay_heap.hpp"

#include <algorithm>

#include "core/alloc/policy.hpp"
#include "core/analyze/make_heap.hpp"

namespace fragshim {

namespace {

/// What the configuration leaves of the capacity.
Bytes allowed_bytes(const ReplayOptions& options) {
  const double fraction = options.config.per_process_memory_fraction;
  Bytes allowed = options.capacity;
  if (allowed != unlimited && fraction < 1) {
    allowed = static_cast<Bytes>(static_cast<double>(allowed) * fraction);
  }
  return std::min(allowed, options.config.memory_limit);
}

}  // namespace

ReplayHeap::ReplayHeap(const ReplayOptions& options)
    : config_(options.config),
      allowed_(allowed_bytes(options)),
      budget_(allowed_),
      limited_(device_, budget_),
      heap_(make_heap(limited_, options.policy, options.config, allowed_, options.chunks)) {}

FailureEvidence ReplayHeap::evidence(const ReplayStep& step) const noexcept {
  FailureEvidence evidence = gather_evidence(*heap_, step.size, step.stream);
  evidence.rounded = policy::round_size(config_, step.size);
  evidence.segment_size = policy::segment_size(config_, evidence.rounded);
  evidence.held = evidence.usage.reserved;
  if (allowed_ != unlimited) {
    evidence.device_total = allowed_;
    evidence.device_free = allowed_ - std::min(allowed_, evidence.held);
  }
  return evidence;
}

}  // namespace fragshim
