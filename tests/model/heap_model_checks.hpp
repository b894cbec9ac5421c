// HeapModel: what must hold after every operation.
#pragma once

#include <algorithm>

#include "core/alloc/policy.hpp"
#include "tests/model/heap_model.hpp"

namespace fragshim::model {

inline void HeapModel::check() {
  require(device_.hazards() == 0, device_.first_hazard());
  std::string why;
  require(heap_->check(&why), why);
  check_counters();
  if (steps_ % 16 == 0) check_every_block();
}

inline void HeapModel::check_counters() {
  const Counters now = heap_->counters();
  require(now.requested == requested_, "requested is not the sum of the live requests");
  require(now.allocated == allocated_, "allocated is not the sum of the live blocks");
  require(now.live_blocks == live_.size(), "live_blocks is wrong");
  require(now.allocations == allocations_ && now.frees == frees_, "a call was not counted");
  require(now.ooms == refusals_, "ooms is not the number of refusals");
  require(now.reserved == device_.used(), "reserved is not what the device holds");
  // Expandable segments map whole pages beyond it, as PyTorch does.
  require(setup_.kind == HeapKind::expandable || now.reserved <= setup_.allowed,
          "more is reserved than is allowed");
  require(now.reserved_peak >= now.reserved && now.allocated_peak >= now.allocated &&
              now.requested_peak >= now.requested,
          "a peak lies below what is held");
}

inline void HeapModel::show() const {
  if (!trace_) return;
  struct Visitor final : BlockVisitor {
    void visit(const BlockView& view) override {
      std::cerr << view.address << " +" << view.size << " of " << view.stream << ", state "
                << static_cast<int>(view.state) << '\n';
    }
  } shown;
  heap_->walk(shown);
}

/// The heap's own view of every block, and where each lies now.
inline void HeapModel::check_every_block() {
  struct Visitor final : BlockVisitor {
    std::map<Address, BlockView> blocks;
    void visit(const BlockView& view) override { blocks.emplace(view.address, view); }
  } seen;
  heap_->walk(seen);
  std::size_t count = 0;
  for (const auto& [address, view] : seen.blocks) {
    count += view.state == BlockState::live ? 1 : 0;
  }
  require(count == live_.size(), "walk shows another number of live blocks");
  for (const auto& [address, live] : live_) {
    const auto found = seen.blocks.find(address);
    require(found != seen.blocks.end() && found->second.state == BlockState::live,
            "walk misses a live block");
    require(found->second.size == live.size && found->second.requested == live.requested,
            "walk shows a block otherwise");
    require(heap_->contains(address) && heap_->contains(address + live.size - 1),
            "contains denies a live block");
    for (const Touch& piece : memory_of(address, live.size)) {
      const auto owner = std::prev(owned_.upper_bound(piece.physical));
      require(owner->first == piece.physical && owner->second == piece.size,
              "a live block's memory was replaced");
    }
  }
  const Usage usage = heap_->usage();
  require(usage.releasable + usage.pinned == usage.cached(), "usage does not add up");
  require(usage.largest_free <= usage.cached(), "a free block is larger than all that is free");
}

inline std::vector<Touch> HeapModel::memory_of(Address address, Bytes size) {
  std::vector<Touch> pieces;
  require(device_.touches(address, size, Access::write, &pieces),
          "a live block has no memory behind it");
  return pieces;
}

/// No two live blocks share a byte of physical memory.
inline void HeapModel::own(Address address, Bytes size) {
  for (const Touch& piece : memory_of(address, size)) {
    const auto next = owned_.lower_bound(piece.physical);
    const bool above = next == owned_.end() || piece.physical + piece.size <= next->first;
    const bool below = next == owned_.begin() ||
                       std::prev(next)->first + std::prev(next)->second <= piece.physical;
    require(above && below, "two live blocks share memory");
    owned_.emplace(piece.physical, piece.size);
  }
}

inline void HeapModel::disown(Address address, Bytes size) {
  for (const Touch& piece : memory_of(address, size)) {
    require(owned_.erase(piece.physical) == 1, "a live block's memory was replaced");
  }
}

/// A refusal is right only if the memory is not there: not in the device, not in the cache, not
/// in blocks that wait for a fence.
inline void HeapModel::check_refusal(Bytes size, const Counters& before) {
  if (setup_.kind == HeapKind::expandable) return;
  const Bytes limit = std::min(setup_.capacity, setup_.allowed);
  const Bytes rounded = policy::round_size(setup_.config, size);
  const Bytes needed = setup_.native() ? policy::segment_size(setup_.config, rounded)
                                       : round_up(rounded, device_.granularity());
  const Usage usage = heap_->usage();
  require(usage.reserved <= before.reserved, "a refused request left memory behind");
  require(usage.reserved + needed > limit, "refused although the device has room");
  require(usage.pending == 0, "refused while freed blocks wait");
  require(usage.releasable == 0, "refused while cached memory could go back");
}

}  // namespace fragshim::model
