// VirtualHeap gathering memory: chunks that lie whole inside free blocks are mapped to where memory
// is missing. A chunk's old addresses stay mapped, hollow, until the device has left them: mapping
// never waits.
#include <algorithm>

#include "core/alloc/accounts.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

constexpr int blocks_looked_at = 64;  // free blocks searched for whole chunks, in each place
constexpr int longest_run = 64;       // free blocks to either side that are looked at with one

}  // namespace

/// Claims free chunks of about `goal` bytes, at most `most`. What waits for nothing comes first:
/// the stream's own and idle memory, then other streams'. Chunks larger than what is wanted come
/// last: what they have too much stays free at the end of the new place.
void VirtualHeap::gather(const Request& request, Bytes goal, Bytes most, Supply* supply) noexcept {
  goal = round_up(goal, device_.granularity());
  const bool oversize = request.size >= config_.max_split_size;
  Terms terms{goal, most, false, oversize, request.slot, false};
  if (gather_everywhere(request, terms, supply)) return;
  if (shared_ > 0) {
    supply->reunited = reunite(request.slot);
    if (supply->reunited != nullptr && gather_everywhere(request, terms, supply)) return;
  }
  terms.larger = true;
  gather_everywhere(request, terms, supply);
}

/// The same on given terms, with lenders and without. True: the goal is reached.
bool VirtualHeap::gather_everywhere(const Request& request, Terms terms, Supply* supply) noexcept {
  for (const bool lenders : {false, true}) {
    if (lenders && request.alone) continue;
    terms.lenders = lenders;
    for (const bool small : {false, true}) {
      gather_on(terms, small, supply);
      if (supply->moved_bytes >= terms.goal) return true;
    }
  }
  return false;
}

/// Claims chunks of one arena, from the largest free blocks first: what a few large gaps hold costs
/// least to move.
void VirtualHeap::gather_on(const Terms& terms, bool small, Supply* supply) noexcept {
  // Larger blocks than this are kept for larger requests.
  IndexKey than{terms.oversize ? unlimited : config_.max_split_size - 1, unlimited};
  for (int i = 0; i < blocks_looked_at && supply->moved_bytes < terms.goal; ++i) {
    Block* block = next_smaller(terms, small, than);
    if (block == nullptr || block->size < device_.granularity()) return;
    than = {block->size, block->address};
    gather_around(block, terms, supply);
  }
}

/// The largest free block below `than`, by size and address.
Block* VirtualHeap::next_smaller(const Terms& terms, bool small,
                                 const IndexKey& than) const noexcept {
  Block* best = nullptr;
  const auto consider = [&](const StreamSlot* slot) {
    const auto at = slot->free[small].before(than);
    if (!at || !lends(at.get(), terms)) return;
    if (best == nullptr || best->size < at->size) best = at.get();
  };
  if (!terms.lenders) {
    consider(terms.taker);
    consider(idle_);
    return best;
  }
  for (const StreamSlot* slot = store_.slots.first(); slot != nullptr; slot = slot->next) {
    consider(slot);
  }
  return best;
}

bool VirtualHeap::lends(const Block* block, const Terms& terms) const noexcept {
  if (block == nullptr || !block->is_free()) return false;
  if (block->size >= config_.max_split_size && !terms.oversize) return false;
  const StreamSlot* slot = block->slot;
  return slot == terms.taker || slot == idle_ || (terms.lenders && !slot->dead);
}

/// Claims chunks from the run of free blocks around one. Where one cannot be moved, it goes, behind
/// the stream's work: what is created in its stead can be moved again.
void VirtualHeap::gather_around(Block* block, const Terms& terms, Supply* supply) noexcept {
  Arena& arena = arena_of(block);
  Block* last = block;
  for (int i = 0; i < longest_run && lends(last->next, terms); ++i) last = last->next;
  for (int i = 0; i < longest_run && lends(block->prev, terms); ++i) block = block->prev;
  const Address end = last->address + last->size;
  auto at = arena.chunks.lower_bound({0, block->address});
  while (at && at->address + at->size <= end && supply->moved_bytes < terms.goal) {
    Chunk* chunk = at.get();
    const Bytes fits = (terms.larger ? terms.most : terms.goal) - supply->moved_bytes;
    const bool leaves = chunk->stays && supply->leaving == nullptr && !terms.lenders;
    if (leaves || (chunk->size <= fits && !chunk->stays)) {
      if (!store_.prepare(4) || !store_.nodes().prepare(4 * IndexTree::max_height)) return;
      arena.chunks.erase(store_.nodes(), at);
      block = carve(block, chunk->address, chunk->size, &chunk->block);
      if (leaves) {
        supply->leaving = chunk;
      } else {
        chunk->link = supply->moved;
        supply->moved = chunk;
        supply->moved_bytes += chunk->size;
        ++supply->moved_count;
      }
    }
    at = arena.chunks.lower_bound({0, chunk->address + chunk->size});
  }
}

/// Makes the taker's stream wait for every other stream whose blocks are about to move. False: it
/// cannot be made to.
bool VirtualHeap::order_lenders(StreamSlot* taker, const Supply& supply, HeapLock& lock) noexcept {
  const std::uint64_t move = ++orders_;  // nobody else ever marks a slot with it
  for (const Chunk* chunk = supply.moved; chunk != nullptr; chunk = chunk->link) {
    const Address end = chunk->address + chunk->size;
    for (const Block* block = chunk->block; block != nullptr && block->address < end;
         block = block->next) {
      StreamSlot* lender = block->slot;
      if (lender == taker || lender == idle_ || lender->ordered == move) continue;
      const Counted naming(lender->named);
      if (lender->dead || !order_behind(lender->id, taker->id, true, lock)) return false;
      lender->ordered = move;
    }
  }
  return true;
}

/// Maps the chunks of a supply one behind the other from `address` on; all of them or none. Called
/// without the lock.
Status VirtualHeap::map_moved(Supply* supply, Address address) noexcept {
  Address to = address;
  for (Chunk* chunk = supply->moved; chunk != nullptr; chunk = chunk->link) {
    const Status status = device_.map(to, chunk->size, chunk->memory);
    if (status.ok()) {
      to += chunk->size;
      continue;
    }
    unmap_moved(*supply, chunk, address);
    supply->refused = chunk;
    return status;
  }
  return {};
}

/// Undoes map_moved, up to the chunk `end`.
void VirtualHeap::unmap_moved(const Supply& supply, const Chunk* end, Address address) noexcept {
  for (const Chunk* chunk = supply.moved; chunk != end; chunk = chunk->link) {
    device_.unmap(address, chunk->size);
    address += chunk->size;
  }
}

/// Enters moved chunks where they are mapped now, from `address` on, and as hollow what they left,
/// and the one that goes.
void VirtualHeap::settle_moved(const Supply& supply, Address address,
                               const Request& request) noexcept {
  Chunk* hollow = supply.hollows->first;
  for (Chunk* chunk = supply.moved; chunk != nullptr; hollow = hollow->link) {
    Chunk* next = chunk->link;
    hollow->address = chunk->address;
    hollow->size = chunk->size;
    hollow->memory = chunk->memory;
    hollow->block = close_up(chunk->block, chunk->size);
    make_hollow(hollow->block);
    chunk->address = address;
    chunk->block = nullptr;
    arenas_[request.small].chunks.insert(store_.nodes(), {0, address}, chunk);
    address += chunk->size;
    chunk = next;
  }
  if (Chunk* leaving = supply.leaving; leaving != nullptr) {
    leaving->block = close_up(leaving->block, leaving->size);
    make_hollow(leaving->block);
    leaving->leaves = true;
    leaving_ += leaving->size;
    leaving->link = supply.hollows->first;
    supply.hollows->first = leaving;
  }
  supply.hollows->number = moves_++;
}

/// Queues a batch behind what the stream has done so far, and behind the lenders it waits for.
void VirtualHeap::leave_behind(HollowBatch* batch, StreamId stream, HeapLock& lock) noexcept {
  {
    Unlocked unlocked(lock);
    if (!device_.record(stream, &batch->fence).ok()) batch->fence = {};
  }
  HollowBatch** last = &hollows_;
  while (*last != nullptr) last = &(*last)->next;
  *last = batch;
}

/// Makes holes of the old addresses that the device has left by now. Gives the bytes of memory that
/// went with them.
Bytes VirtualHeap::reclaim_hollows(HeapLock& lock) noexcept {
  Bytes gone = 0;
  while (HollowBatch* batch = hollows_) {
    hollows_ = batch->next;  // in nobody's reach while the lock is dropped
    if (left_behind(batch, lock) && unmap_hollows(batch, &gone, lock)) {
      hollow_pool_.give(batch);
      continue;
    }
    batch->next = hollows_;
    hollows_ = batch;
    break;
  }
  return gone;
}

/// Whether the device is done with a batch's addresses.
bool VirtualHeap::left_behind(HollowBatch* batch, HeapLock& lock) noexcept {
  if (batch->over) return true;
  batch->over = batch->number < moves_past_ || passed(batch, lock);
  if (batch->over && batch->fence) device_.retire(batch->fence);
  return batch->over;
}

/// Whether a batch's fence has passed; it gets one where there was none to be had before.
bool VirtualHeap::passed(HollowBatch* batch, HeapLock& lock) noexcept {
  Unlocked unlocked(lock);
  if (!batch->fence && !device_.record(all_streams, &batch->fence).ok()) {
    batch->fence = {};
    return false;
  }
  return device_.query(batch->fence).ok();
}

/// Unmaps a batch's addresses. False: some are left in it, to be tried again.
bool VirtualHeap::unmap_hollows(HollowBatch* batch, Bytes* gone, HeapLock& lock) noexcept {
  while (Chunk* hollow = batch->first) {
    if (!store_.nodes().prepare(2 * IndexTree::max_height)) return false;
    {
      Unlocked unlocked(lock);
      if (!device_.unmap(hollow->address, hollow->size).ok()) return false;
      if (hollow->leaves) device_.destroy(hollow->memory, hollow->size);
    }
    if (hollow->leaves) {
      accounts::returned(store_.counters, hollow->size);
      leaving_ -= hollow->size;
      *gone += hollow->size;
    }
    batch->first = hollow->link;
    make_hole(hollow->block);
    chunk_pool_.give(hollow);
  }
  return true;
}

}  // namespace fragshim
