// VirtualHeap among streams: blocks that come home, streams that end, blocks taken over.
#include <thread>

#include "core/alloc/patience.hpp"
#include "core/alloc/policy.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

constexpr int most_lenders = 4;  // other streams asked for a block before the heap grows
// How long a request without any other resort hopes for what other threads have in hand.
constexpr auto last_resort = std::chrono::milliseconds(20);

}  // namespace

/// Every resort in turn, the cheapest first: what has come home, what a dead stream left, what
/// other streams no longer use, what they will have finished with (freed there or on its way home),
/// new memory, memory gathered from wherever it lies free, and new memory once the host has waited
/// and everything idle has gone back.
Block* VirtualHeap::obtain(Request& request, HeapLock& lock) noexcept {
  const Counted here(at_work_);
  const Counted use(request.slot->users);
  if (!reserve_range(request, lock)) return nullptr;
  if (collect_returning(lock)) {
    if (Block* block = take_own(request)) return block;
  }
  if (dead_streams_ > 0) {
    bury_dead_streams(lock);
    if (Block* block = take_own(request)) return block;
  }
  if (Block* block = take_over(request, false, lock)) return block;
  if (!request.small) {
    if (returning_ >= request.size || returning_ > room_to_grow(request)) {
      if (Block* block = claim_returning(request, lock)) return block;
    }
    if (Block* block = take_over(request, true, lock)) return block;
  }
  if (Block* block = grow(request, lock)) return block;
  request.scarce = true;
  if (Block* block = grow(request, lock)) return block;
  request.tight = true;
  ++store_.counters.retries;
  for (Patience others(last_resort);;) {
    const std::uint64_t frees = store_.counters.frees;
    await_returning(lock);
    if (Block* block = take_own(request)) return block;
    release(0, lock);
    if (Block* block = grow(request, lock)) return block;
    if (Block* block = take_over(request, true, lock)) return block;
    // What other threads have in hand or free at this moment is not lost to this request.
    const bool quiet = at_work_ == 1 && frees == store_.counters.frees;
    if (quiet || !others.rest(lock)) return nullptr;
  }
}

/// Takes in the blocks freed on streams other than their own whose fence has passed by now. True
/// where there was one.
bool VirtualHeap::collect_returning(HeapLock& lock) noexcept {
  const Counted here(at_work_);
  bool any = false;
  for (StreamSlot* slot = store_.slots.first(); returning_ > 0 && slot != nullptr;
       slot = slot->next) {
    if (slot->returning.empty()) continue;
    const Counted use(slot->users);  // it stays while the lock is dropped
    close_returning(slot, lock);
    while (Block* chain = slot->returning.collect(device_, batches_, lock)) {
      come_home(chain);
      any = true;
    }
  }
  return any;
}

/// Puts a fence behind the blocks freed on a stream. False: there is none to be had.
bool VirtualHeap::close_returning(StreamSlot* slot, HeapLock& lock) noexcept {
  const Counted naming(slot->named);
  return slot->returning.close(device_, slot->dead ? all_streams : slot->id, batches_, lock);
}

/// Takes in all blocks freed on streams other than their own, however long the device needs.
void VirtualHeap::await_returning(HeapLock& lock) noexcept {
  if (returning_ == 0) return;
  ++store_.counters.waits;
  for (StreamSlot* slot = store_.slots.first(); slot != nullptr; slot = slot->next) {
    if (slot->returning.empty()) continue;
    const Counted use(slot->users);  // it stays while the lock is dropped
    const bool closed = close_returning(slot, lock);
    slot->returning.drain(device_, closed, batches_, lock,
                          [this](Block* chain) { come_home(chain); });
  }
}

/// Makes the request's stream wait on the device for what was freed on other streams, batch by
/// batch until one serves. What it waited for is its own from then on.
Block* VirtualHeap::claim_returning(const Request& request, HeapLock& lock) noexcept {
  for (StreamSlot* slot = store_.slots.first(); returning_ > 0 && slot != nullptr;
       slot = slot->next) {
    if (slot->returning.empty()) continue;
    const Counted use(slot->users);  // it stays while the lock is dropped
    close_returning(slot, lock);
    while (Block* chain = slot->returning.order(device_, request.slot->id, batches_, lock)) {
      come_home(chain, request.slot);
      if (Block* block = take_own(request)) return block;
    }
  }
  return nullptr;
}

/// Settles blocks whose fence has passed where they belong, or at the stream that took them over.
void VirtualHeap::come_home(Block* chain, StreamSlot* taker) noexcept {
  while (chain != nullptr) {
    Block* block = chain;
    chain = block->link;
    returning_ -= block->size;
    --block->slot->users;
    if (taker != nullptr) block->slot = taker;
    if (block->slot->dead) block->slot = idle_;
    store_.settle(block);
  }
}

void VirtualHeap::forget_stream(StreamId stream) noexcept {
  HeapLock lock(mutex_);
  StreamSlot* slot = store_.slots.find(stream);
  if (slot == nullptr || slot == idle_ || slot == everywhere_) return;
  settle_recent();
  const Counted here(at_work_);
  const Counted use(slot->users);
  // From here on nobody but this thread begins to name the stream to the device.
  store_.slots.forget(slot);
  ++dead_streams_;
  slot->asked = true;
  while (slot->named > 0) {
    Unlocked unlocked(lock);
    std::this_thread::yield();
  }
  slot->returning.close(device_, stream, batches_, lock);
  Fence fence;
  bool fenced;
  {
    Unlocked unlocked(lock);
    fenced = device_.record(stream, &fence).ok();
  }
  slot->fence = fence;
  slot->fenced = fenced;
  slot->asked = false;
}

/// Hands what dead streams left to everybody once their last work is done, and drops their slots.
/// What was freed on one needs no fence of its own then, which may not have been had.
void VirtualHeap::bury_dead_streams(HeapLock& lock) noexcept {
  for (StreamSlot* slot = store_.slots.first(); slot != nullptr;) {
    const bool over = slot->dead && outlived(slot, lock);
    StreamSlot* next = slot->next;
    if (over) {
      come_home(slot->returning.take_open());
      make_idle(slot);
      if (slot->users == 0 && slot->returning.empty()) {
        store_.slots.recycle(slot);
        --dead_streams_;
      }
    }
    slot = next;
  }
}

/// Whether a dead stream's last work is done.
bool VirtualHeap::outlived(StreamSlot* slot, HeapLock& lock) noexcept {
  if (slot->asked) return false;
  if (slot->fenced && !slot->fence) return true;
  const Counted use(slot->users);
  slot->asked = true;
  bool passed = false;
  {
    Unlocked unlocked(lock);
    if (!slot->fenced) slot->fenced = device_.record(all_streams, &slot->fence).ok();
    if (slot->fenced) {
      passed = device_.query(slot->fence).ok();
      if (passed) device_.retire(slot->fence);
    } else {
      // Its own fence failed, and the driver has none over all streams: wait once.
      passed = device_.synchronize().ok();
    }
  }
  if (passed) {
    slot->fence = {};
    slot->fenced = true;
  }
  slot->asked = false;
  return passed;
}

void VirtualHeap::make_idle(StreamSlot* slot) noexcept {
  for (OrderedIndex<Block>& free : slot->free) {
    while (const auto at = free.first()) {
      Block* block = at.get();
      store_.erase_free(block);
      block->slot = idle_;
      store_.settle(block);
    }
  }
}

/// Takes a fitting block from another stream whose work so far is done, or (`wait`) makes the
/// request's stream wait for it. The block is out of everybody's reach before the fence is
/// recorded, so nothing freed later can slip in under it.
Block* VirtualHeap::take_over(const Request& request, bool wait, HeapLock& lock) noexcept {
  const std::uint64_t search = ++searches_;  // others begin theirs while the lock is dropped
  for (int lenders = 0; lenders < most_lenders; ++lenders) {
    Block* block = best_elsewhere(request, search);
    if (block == nullptr) return nullptr;
    StreamSlot* lender = block->slot;
    lender->tried = search;
    store_.erase_free(block);
    block->state = Block::State::pending;
    const Counted use(lender->users);
    const Counted naming(lender->named);
    const bool ours = order_behind(lender->id, request.slot->id, wait, lock);
    if (ours) {
      block->slot = request.slot;
      return block;
    }
    store_.settle(block);
  }
  return nullptr;
}

/// The smallest fitting free block of a stream not yet asked in this search.
Block* VirtualHeap::best_elsewhere(const Request& request, std::uint64_t search) noexcept {
  Block* best = nullptr;
  for (StreamSlot* slot = store_.slots.first(); slot != nullptr; slot = slot->next) {
    if (slot == request.slot || slot == idle_ || slot->dead || slot->tried == search) continue;
    const auto at = slot->free[request.small].lower_bound({request.size, 0});
    if (!at || !policy::may_serve(config_, at->size, request.size)) continue;
    if (best == nullptr || at->size < best->size) best = at.get();
  }
  return best;
}

/// Whether `taker` may use what `lender` has freed so far: because its work is done, or (`wait`)
/// because the taker has been made to wait for it on the device.
bool VirtualHeap::order_behind(StreamId lender, StreamId taker, bool wait,
                               HeapLock& lock) noexcept {
  Unlocked unlocked(lock);
  Fence fence;
  if (!device_.record(lender, &fence).ok()) return false;
  bool ordered = device_.query(fence).ok();
  if (!ordered && wait) ordered = device_.stream_wait(taker, fence).ok();
  device_.retire(fence);
  return ordered;
}

}  // namespace fragshim
