// NativeHeap when no cached block fits: take back what has been freed, grow, release, try again.
#include <algorithm>

#include "core/alloc/accounts.hpp"
#include "core/alloc/native_heap.hpp"
#include "core/alloc/patience.hpp"
#include "core/alloc/policy.hpp"

namespace fragshim {
namespace {

// Freed memory may wait for its fence while the heap grows, up to this much or as much as is live:
// a program that runs ahead of the device must not fill the card. Beyond it the heap waits, as the
// real cudaFree would have, but not for long: the device may itself wait for this thread.
constexpr Bytes free_growth = 256 * MiB;
constexpr auto longest_wait = std::chrono::milliseconds(100);

// How long a request without any other resort hopes for what other threads have in hand.
constexpr auto last_resort = std::chrono::milliseconds(20);

}  // namespace

/// PyTorch's order: collect garbage, grow, release oversize blocks and grow, release all and grow.
Block* NativeHeap::obtain(Request& request, HeapLock& lock) noexcept {
  const Counted here(at_work_);
  request.segment_size = policy::segment_size(config_, request.size);
  if (fenced()) {
    if (Block* block = reuse_pending(request, lock)) return block;
  }
  if (collects_garbage()) collect_garbage(lock);
  if (Block* block = grow(request, lock)) return block;
  if (fenced()) {
    wait_for_pending(lock);
    if (Block* block = take_free(request)) return block;
  }
  if (release_oversize(request, lock)) {
    if (Block* block = grow(request, lock)) return block;
  }
  ++store_.counters.retries;
  for (Patience others(last_resort);;) {
    const std::uint64_t frees = store_.counters.frees;
    release_cached(lock, 0);
    if (Block* block = grow(request, lock)) return block;
    // What other threads have in hand or free at this moment is not lost to this request.
    const bool quiet = at_work_ == 1 && frees == store_.counters.frees;
    if (quiet || !others.rest(lock)) return nullptr;
    wait_for_pending(lock);
    if (Block* block = take_free(request)) return block;
  }
}

/// Serves a request from blocks whose fence has passed by now; waits only where growing instead
/// would let freed memory pile up.
Block* NativeHeap::reuse_pending(Request& request, HeapLock& lock) noexcept {
  if (pending_.bytes() + request.segment_size <= options_.fence_spare) return nullptr;
  if (pending_.empty()) return nullptr;
  if (collect_pending(lock)) {
    if (Block* block = take_free(request)) return block;
  }
  const Bytes allowance = std::max(free_growth, store_.counters.allocated);
  const auto piles_up = [&] {
    return pending_.bytes() + request.segment_size > allowance && pending_.bytes() >= request.size;
  };
  if (piles_up() && !fences_work(lock)) {
    wait_for_pending(lock);
    return take_free(request);
  }
  Patience device(longest_wait);
  while (piles_up() && device.rest(lock)) {
    if (collect_pending(lock)) {
      ++store_.counters.waits;
      if (Block* block = take_free(request)) return block;
    }
  }
  return nullptr;
}

/// False on drivers without a fence over all streams, and while a capture is underway: then no
/// batch ever comes back by itself.
bool NativeHeap::fences_work(HeapLock& lock) noexcept {
  Unlocked unlocked(lock);
  Fence fence;
  if (!device_.record(all_streams, &fence).ok()) return false;
  device_.retire(fence);
  return true;
}

/// Takes back every batch whose fence has passed. True where there was one.
bool NativeHeap::collect_pending(HeapLock& lock) noexcept {
  pending_.close(device_, all_streams, batches_, lock);
  bool any = false;
  while (Block* chain = pending_.collect(device_, batches_, lock)) {
    store_.settle_chain(chain);
    any = true;
  }
  return any;
}

/// Takes back every freed block, however long the device needs.
void NativeHeap::wait_for_pending(HeapLock& lock) noexcept {
  if (pending_.empty()) return;
  ++store_.counters.waits;
  const bool closed = pending_.close(device_, all_streams, batches_, lock);
  pending_.drain(device_, closed, batches_, lock,
                 [this](Block* chain) { store_.settle_chain(chain); });
}

/// Gets a segment for the request: a free block that is in no index, or null.
Block* NativeHeap::grow(Request& request, HeapLock& lock) noexcept {
  if (limited() && store_.counters.reserved + request.segment_size > options_.allowed) {
    request.failure = {Outcome::over_limit};
    return nullptr;
  }
  if (config_.expandable_segments) return grow_expandable(request);
  Address address = 0;
  Status got;
  {
    Unlocked unlocked(lock);
    got = device_.allocate_segment(request.segment_size, &address);
  }
  if (!got.ok()) {
    request.failure = got;
    return nullptr;
  }
  if (Block* block = add_segment(address, request.segment_size, request)) return block;
  Unlocked unlocked(lock);
  device_.release_segment(address, request.segment_size);
  return nullptr;
}

/// Null when the host has no memory for the records.
Block* NativeHeap::add_segment(Address address, Bytes size, const Request& request) noexcept {
  if (!store_.prepare(1) || !segment_pool_.prepare(1)) return nullptr;
  Segment* segment = segment_pool_.take();
  segment->address = address;
  segment->size = size;
  if (!segments_.insert(store_.nodes(), {0, address}, segment)) {
    segment_pool_.give(segment);
    return nullptr;
  }
  Block* block = store_.make(address, size, request.slot, request.small);
  segment->first = block;
  accounts::reserved(store_.counters, size);
  return block;
}

/// Takes a free block that is a whole segment out of everybody's reach and puts it on a chain to
/// give back.
void NativeHeap::detach(Block* block, Block** chain) noexcept {
  store_.erase_free(block);
  block->state = Block::State::pending;
  block->link = *chain;
  *chain = block;
}

/// Returns detached segments to the device. One that the device refuses to take stays cached.
Bytes NativeHeap::give_back(Block* chain, HeapLock& lock) noexcept {
  Bytes returned = 0;
  while (chain != nullptr) {
    Block* block = chain;
    chain = block->link;
    // Out of the index first: another thread may get the same address while the lock is dropped.
    Segment* segment = segments_.erase(store_.nodes(), {0, block->address});
    Status gone;
    {
      Unlocked unlocked(lock);
      gone = device_.release_segment(block->address, block->size);
    }
    if (!gone.ok()) {
      segments_.insert(store_.nodes(), {0, block->address}, segment);
      store_.insert_free(block);
      continue;
    }
    returned += block->size;
    accounts::returned(store_.counters, block->size);
    segment_pool_.give(segment);
    store_.drop(block);
  }
  return returned;
}

/// Gives every segment without a live block back, until at most `keep` bytes stay reserved.
Bytes NativeHeap::release_cached(HeapLock& lock, Bytes keep) noexcept {
  wait_for_pending(lock);
  Block* chain = nullptr;
  Bytes left = store_.counters.reserved;
  for (auto at = segments_.first(); at && left > keep; at = at.next()) {
    Block* block = at->first;
    if (at->expandable() || !block->is_whole() || !block->is_free()) continue;
    left -= block->size;
    detach(block, &chain);
  }
  const Bytes returned = give_back(chain, lock);
  const Bytes before = store_.counters.reserved;
  if (config_.expandable_segments && before > keep) release_expandable();
  return returned + (before - store_.counters.reserved);
}

/// PyTorch's release_available_cached_blocks: gives oversize blocks of the stream back, one that is
/// large enough for the request or several, largest first. False: not enough to serve it.
bool NativeHeap::release_oversize(const Request& request, HeapLock& lock) noexcept {
  if (config_.max_split_size == AllocationConfig::no_limit) return false;
  const OrderedIndex<Block>& free = request.slot->free[request.small];
  const Bytes wanted = std::max(request.size, config_.max_split_size);
  auto at = free.lower_bound({wanted, 0});
  Block* chain = nullptr;
  Bytes released = 0;
  if (at && !at->expandable) {
    released = at->size;
    detach(at.get(), &chain);
  } else {
    IndexKey below{wanted, 0};
    for (at = at ? at.prev() : free.last();
         at && released < wanted && at->size >= config_.max_split_size; at = free.before(below)) {
      Block* block = at.get();
      below = at.key();
      if (block->expandable) continue;
      released += block->size;
      detach(block, &chain);
    }
  }
  give_back(chain, lock);
  return released >= wanted;
}

/// PyTorch's garbage_collect_cached_blocks: above the threshold, unsplit blocks of at least average
/// age go, pass after pass, until the target is met.
void NativeHeap::collect_garbage(HeapLock& lock) noexcept {
  const auto threshold = static_cast<Bytes>(config_.garbage_collection_threshold *
                                            static_cast<double>(options_.allowed));
  if (store_.counters.reserved <= threshold) return;
  const Bytes target = store_.counters.reserved - threshold;
  constexpr bool large = false;
  const auto age = [this](const Block* block) -> std::uint64_t {
    return store_.searches[large] - block->born;
  };
  std::uint64_t total_age = 0;
  std::uint64_t freeable = 0;
  for (StreamSlot* slot = store_.slots.first(); slot != nullptr; slot = slot->next) {
    for (auto at = slot->free[large].first(); at; at = at.next()) {
      if (!at->is_whole() || at->expandable) continue;
      total_age += age(at.get());
      ++freeable;
    }
  }
  Bytes reclaimed = 0;
  Block* chain = nullptr;
  bool progress = true;
  while (reclaimed < target && progress && freeable > 0) {
    const double average = static_cast<double>(total_age) / static_cast<double>(freeable);
    progress = false;
    for (StreamSlot* slot = store_.slots.first(); slot != nullptr; slot = slot->next) {
      auto at = slot->free[large].first();
      while (at) {
        Block* block = at.get();
        const IndexKey key = at.key();
        if (block->is_whole() && !block->expandable && static_cast<double>(age(block)) >= average) {
          progress = true;
          reclaimed += block->size;
          total_age -= age(block);
          --freeable;
          detach(block, &chain);
        }
        at = slot->free[large].after(key);
      }
    }
  }
  give_back(chain, lock);
}

}  // namespace fragshim
