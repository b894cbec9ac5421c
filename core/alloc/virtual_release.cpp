// VirtualHeap giving memory back: chunks that lie whole inside free blocks.
#include <algorithm>

#include "core/alloc/accounts.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {

/// Gives idle chunks back until at most `keep` bytes stay reserved, as far as there are any.
Bytes VirtualHeap::release(Bytes keep, HeapLock& lock) noexcept {
  if (store_.counters.reserved <= keep) return 0;
  settle_recent();
  if (shared_ > 0) {
    HollowBatch* batch = reunite(nullptr);
    if (batch != nullptr) leave_behind(batch, all_streams, lock);
  }
  const Bytes wanted = store_.counters.reserved - keep;
  Bytes returned = 0;
  if (leaving_ > 0) leave_all_behind(&returned, lock);
  for (const bool small : {false, true}) {
    if (returned >= wanted) break;
    Chunk* chunks = claim_idle_chunks(arenas_[small], wanted - returned);
    if (chunks == nullptr) continue;
    // Memory would live on at addresses that it has left.
    const bool idle = leave_all_behind(&returned, lock);
    while (chunks != nullptr) {
      Chunk* chunk = chunks;
      chunks = chunk->link;
      if (idle && !is_hollow_elsewhere(chunk) && give_back(chunk, lock)) {
        returned += chunk->size;
        drop_chunk(chunk);
      } else {
        keep_chunk(chunk);
      }
    }
  }
  return returned;
}

/// Takes chunks that lie whole inside free blocks out of everybody's reach, until they come to
/// `wanted` bytes. Whose blocks they are does not matter: the device is awaited before they go.
Chunk* VirtualHeap::claim_idle_chunks(Arena& arena, Bytes wanted) noexcept {
  Chunk* chain = nullptr;
  Bytes claimed = 0;
  for (Block* block = arena.first; block != nullptr && claimed < wanted; block = block->next) {
    if (!block->is_free()) continue;
    const Address end = end_of_run(block);
    while (claimed < wanted) {
      const auto at = arena.chunks.lower_bound({0, block->address});
      if (!at || at->address + at->size > end) break;
      if (!store_.prepare(2) || !store_.nodes().prepare(4 * IndexTree::max_height)) return chain;
      Chunk* chunk = at.get();
      arena.chunks.erase(store_.nodes(), at);
      block = carve(block, chunk->address, chunk->size, &chunk->block);
      chunk->link = chain;
      chain = chunk;
      claimed += chunk->size;
    }
    while (block->address + block->size < end) block = block->next;
  }
  return chain;
}

/// Where the free blocks that follow one another from `block` on end.
Address VirtualHeap::end_of_run(const Block* block) noexcept {
  while (block->next != nullptr && block->next->is_free()) block = block->next;
  return block->address + block->size;
}

/// Cuts addresses out of the run of free blocks around them; what is left of those stays free. The
/// pieces keep their streams, in case the memory stays. Returns the last piece.
Block* VirtualHeap::carve(Block* block, Address address, Bytes size, Block** first) noexcept {
  const Address end = address + size;
  while (block->address + block->size <= address) block = block->next;
  store_.erase_free(block);
  if (block->address < address) {
    Block* inside = store_.cut(block, address - block->address);
    store_.insert_free(block);
    block = inside;
  }
  *first = block;
  for (;;) {
    block->state = Block::State::pending;
    ++block->slot->users;  // it stays while the lock is dropped
    if (block->address + block->size >= end) break;
    block = block->next;
    store_.erase_free(block);
  }
  if (block->address + block->size > end) {
    store_.insert_free(store_.cut(block, end - block->address));
  }
  return block;
}

/// Whether a chunk's memory is still mapped at addresses that it has left, where it would live on.
bool VirtualHeap::is_hollow_elsewhere(const Chunk* chunk) const noexcept {
  for (const HollowBatch* batch = hollows_; batch != nullptr; batch = batch->next) {
    for (const Chunk* hollow = batch->first; hollow != nullptr; hollow = hollow->link) {
      if (hollow->memory.handle == chunk->memory.handle) return true;
    }
  }
  return false;
}

/// Unmaps a claimed chunk. False: the device refused.
bool VirtualHeap::give_back(const Chunk* chunk, HeapLock& lock) noexcept {
  Unlocked unlocked(lock);
  if (!device_.unmap(chunk->address, chunk->size).ok()) return false;
  device_.destroy(chunk->memory, chunk->size);
  return true;
}

/// Makes one block, in no index, of claimed pieces.
Block* VirtualHeap::close_up(Block* first, Bytes size) noexcept {
  --first->slot->users;
  while (first->size < size) {
    --first->next->slot->users;
    store_.absorb(first, first->next);
  }
  return first;
}

/// Makes a hole of a claimed chunk that is gone.
void VirtualHeap::drop_chunk(Chunk* chunk) noexcept {
  accounts::returned(store_.counters, chunk->size);
  make_hole(close_up(chunk->block, chunk->size));
  chunk_pool_.give(chunk);
}

/// Keeps a claimed chunk after all.
void VirtualHeap::keep_chunk(Chunk* chunk) noexcept {
  arena_of(chunk->block).chunks.insert(store_.nodes(), {0, chunk->address}, chunk);
  keep(chunk->block, chunk->size);
}

/// Frees claimed pieces again.
void VirtualHeap::keep(Block* first, Bytes size) noexcept {
  const Address end = first->address + size;
  for (Block* block = first; block != nullptr;) {
    Block* next = block->address + block->size < end ? block->next : nullptr;
    --block->slot->users;
    store_.settle(block);
    block = next;
  }
}

/// Waits until all work submitted so far is done, since what ran before a free may still touch the
/// block. False: nobody can tell.
bool VirtualHeap::wait_for_device(HeapLock& lock) noexcept {
  Unlocked unlocked(lock);
  Fence fence;
  if (!device_.record(all_streams, &fence).ok()) return device_.synchronize().ok();
  const bool passed = device_.wait(fence).ok();
  device_.retire(fence);
  return passed;
}

/// Waits for the device, and makes holes of all old addresses; adds the memory that goes with them.
/// False: nobody can tell when the device is done.
bool VirtualHeap::leave_all_behind(Bytes* gone, HeapLock& lock) noexcept {
  const std::uint64_t moves = moves_;
  const bool idle = wait_for_device(lock);
  if (idle) moves_past_ = std::max(moves_past_, moves);
  *gone += reclaim_hollows(lock);
  return idle;
}

/// What release could give back now, or once freed blocks have come home, in bytes: chunks on which
/// nothing lives.
Bytes VirtualHeap::releasable(const Arena& arena) const noexcept {
  Bytes bytes = 0;
  const auto idle = [](const Block& block) {
    return block.is_free() || block.state == Block::State::pending;
  };
  for (const Block* block = arena.first; block != nullptr;) {
    if (!idle(*block)) {
      block = block->next;
      continue;
    }
    const Address start = block->address;
    Address end = start;
    for (; block != nullptr && idle(*block); block = block->next) end += block->size;
    for (auto at = arena.chunks.lower_bound({0, start}); at && at->address + at->size <= end;
         at = at.next()) {
      bytes += at->size;
    }
  }
  for (auto at = arena.chunks.first(); at && shared_ > 0; at = at.next()) {
    if (at->twin != nullptr) bytes += shared_and_idle(at.get());
  }
  return bytes;
}

}  // namespace fragshim
