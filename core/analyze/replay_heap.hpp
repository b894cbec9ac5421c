// A fresh heap on a simulated device, driven by the steps of a trace.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "config/allocation_config.hpp"
#include "core/alloc/chunk_sizes.hpp"
#include "core/alloc/heap.hpp"
#include "core/analyze/replay_steps.hpp"
#include "core/device/limited.hpp"
#include "core/device/simulated.hpp"
#include "core/record/failure.hpp"

namespace fragshim {

struct ReplayOptions {
  PolicyKind policy = PolicyKind::native;
  AllocationConfig config;
  ChunkSizes chunks;  // what stitching works with
  /// What the process may take in all; per_process_memory_fraction and memory_limit_mb of the
  /// configuration make it less. `unlimited`: no limit.
  Bytes capacity = unlimited;
  /// Called every few thousand events with their number so far.
  std::function<void(std::uint64_t)> progress;
  /// Ends the replay at the first request that fails.
  bool stop_at_failure = false;
  /// So many failures get a class; each one takes a walk over every block.
  std::uint64_t most_classified = 1000;
};

class ReplayHeap {
 public:
  /// Throws std::invalid_argument for a policy that this build does not have.
  explicit ReplayHeap(const ReplayOptions& options);

  /// Makes room for slots below `slots`; before steps that have them.
  void prepare(std::size_t slots) { blocks_.resize(slots); }

  /// Carries out one step. The address of the block that came or went; 0 for a trim, for a request
  /// that failed, and for the free of one that did.
  Address apply(const ReplayStep& step) noexcept {
    if (step.action == Action::allocate) {
      const Grant grant = heap_->allocate(step.size, step.stream);
      return blocks_[step.slot] = grant.status.ok() ? grant.address : 0;
    }
    if (step.action == Action::free) {
      const Address address = blocks_[step.slot];
      if (address != 0) heap_->free(address, step.stream);
      return address;
    }
    heap_->trim(0);
    return 0;
  }

  /// What is known of a request that has just failed. The capacity is taken for the card: nobody
  /// else is on it.
  FailureEvidence evidence(const ReplayStep& step) const noexcept;

  const Heap& heap() const { return *heap_; }
  /// Microseconds that a real driver would have spent, modelled.
  double device_time_us() const { return device_.time_us(); }

 private:
  const AllocationConfig config_;
  const Bytes allowed_;
  SimulatedDevice device_;
  Budget budget_;
  LimitedDevice limited_;
  std::unique_ptr<Heap> heap_;
  std::vector<Address> blocks_;  // by slot: where this heap put the block; 0: nowhere
};

}  // namespace fragshim
