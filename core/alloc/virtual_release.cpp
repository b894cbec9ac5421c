// VirtualHeap giving memory back: chunks that lie whole inside free blocks.
#include "core/alloc/accounts.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {

/// Gives idle chunks back until at most `keep` bytes stay reserved, as far as there are any.
Bytes VirtualHeap::release(Bytes keep, HeapLock& lock) noexcept {
  if (store_.counters.reserved <= keep) return 0;
  const Bytes wanted = store_.counters.reserved - keep;
  Bytes returned = 0;
  ++releasing_;
  for (const bool small : {false, true}) {
    Arena& arena = arenas_[small];
    if (returned >= wanted) break;
    Chunk* chunks = claim_idle_chunks(arena, wanted - returned);
    if (chunks == nullptr) continue;
    const bool idle = wait_for_device(lock);
    while (chunks != nullptr) {
      Chunk* chunk = chunks;
      chunks = chunk->link;
      bool gone = false;
      if (idle) {
        Unlocked unlocked(lock);
        gone = device_.unmap(chunk->address, chunk->size).ok();
        if (gone) device_.destroy(chunk->memory, chunk->size);
      }
      if (gone) {
        returned += chunk->size;
        accounts::returned(store_.counters, chunk->size);
        make_hole(chunk->block);
        chunk_pool_.give(chunk);
      } else {
        arena.chunks.insert(store_.nodes(), {0, chunk->address}, chunk);
        store_.settle(chunk->block);
      }
    }
  }
  --releasing_;
  return returned;
}

/// Takes chunks that lie whole inside free blocks, `wanted` bytes or a chunk more, out of
/// everybody's reach: a block of its own for each.
Chunk* VirtualHeap::claim_idle_chunks(Arena& arena, Bytes wanted) noexcept {
  Chunk* chain = nullptr;
  Bytes claimed = 0;
  for (Block* block = arena.first; block != nullptr && claimed < wanted; block = block->next) {
    if (!block->is_free()) continue;
    const auto at = arena.chunks.lower_bound({0, block->address});
    if (!at || at->address + at->size > block->address + block->size) continue;
    if (!store_.prepare(2) || !store_.nodes().prepare(4 * IndexTree::max_height)) break;
    Chunk* chunk = at.get();
    arena.chunks.erase(store_.nodes(), {0, chunk->address});
    block = carve(block, *chunk);
    chunk->block = block;
    chunk->link = chain;
    chain = chunk;
    claimed += chunk->size;
  }
  return chain;
}

/// Cuts a chunk's addresses out of the free block around them; what is left stays free.
Block* VirtualHeap::carve(Block* block, const Chunk& chunk) noexcept {
  store_.erase_free(block);
  block->state = Block::State::pending;
  const Address end = chunk.address + chunk.size;
  if (block->address + block->size > end)
    store_.insert_free(store_.cut(block, end - block->address));
  if (block->address == chunk.address) return block;
  Block* middle = store_.cut(block, chunk.address - block->address);
  store_.insert_free(block);
  return middle;
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
  return bytes;
}

}  // namespace fragshim
