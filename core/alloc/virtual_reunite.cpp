// VirtualHeap bringing shared chunks together again: a place at which nothing of a chunk is in use
// any more is given up, and what was free there serves at another of the chunk's places.
#include <algorithm>

#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

bool is_hollow(const Block* block) { return block->state == Block::State::hollow; }

/// The block that covers an address of a shared chunk's place.
Block* covering(const Chunk* chunk, Address address) {
  Block* block = chunk->shadow;
  while (block->address > address) block = block->prev;
  while (block->address + block->size <= address) block = block->next;
  return block;
}

/// Calls `visit` for the blocks at a shared chunk's place, until it says false.
template <typename Visit>
void for_each_block(const Chunk* chunk, Visit visit) {
  const Address end = chunk->address + chunk->size;
  for (Block* block = covering(chunk, chunk->address); block != nullptr && block->address < end;
       block = block->next) {
    if (!visit(block)) return;
  }
}

/// How much of a block lies at a chunk's place, in bytes.
Bytes part_of(const Chunk* chunk, const Block* block) {
  const Address end = std::min(chunk->address + chunk->size, block->address + block->size);
  return end - std::max(chunk->address, block->address);
}

/// A hollow block at a shared chunk's place that is not `other`; null: there is none.
Block* shadow_beside(const Chunk* chunk, const Block* other) {
  Block* shadow = nullptr;
  for_each_block(chunk, [&](Block* block) {
    if (is_hollow(block) && block != other) shadow = block;
    return shadow == nullptr;
  });
  return shadow;
}

}  // namespace

/// Gives up the places of shared chunks that the taker could use all there is of. The batch of
/// their addresses, to be left behind; null: there were none. Nobody for a taker: whosever it is.
HollowBatch* VirtualHeap::reunite(const StreamSlot* taker) noexcept {
  HollowBatch* batch = nullptr;
  for (Arena& arena : arenas_) {
    for (auto at = arena.chunks.first(); at && shared_ > 0;) {
      Chunk* chunk = at.get();
      const Address next = chunk->address + chunk->size;
      if (chunk->twin != nullptr && hollow_pool_.prepare(1) && give_up_place(chunk, taker)) {
        if (batch == nullptr) {
          batch = hollow_pool_.take();
          batch->number = moves_++;
        }
        chunk->link = batch->first;
        batch->first = chunk;
      }
      at = arena.chunks.lower_bound({0, next});
    }
  }
  return batch;
}

/// Whether all that serves at a shared chunk's place is free, and good for the taker (nobody: for
/// anyone). `pieces` counts the blocks.
bool VirtualHeap::is_idle(const Chunk* chunk, const StreamSlot* taker,
                          std::size_t* pieces) const noexcept {
  bool idle = true;
  for_each_block(chunk, [&](const Block* block) {
    ++*pieces;
    const bool good = taker == nullptr || block->slot == taker || block->slot == idle_;
    idle = is_hollow(block) || (block->is_free() && good);
    return idle;
  });
  return idle;
}

/// Gives up one place of a shared chunk, if it is idle: one hollow block is left there, the
/// record's own.
bool VirtualHeap::give_up_place(Chunk* chunk, const StreamSlot* taker) noexcept {
  std::size_t pieces = 0;
  if (!is_idle(chunk, taker, &pieces) || !store_.prepare(3 * pieces + 2) ||
      !store_.nodes().prepare((3 * pieces + 4) * IndexTree::max_height)) {
    return false;
  }
  const Address end = chunk->address + chunk->size;
  Block* block = covering(chunk, chunk->address);
  while (block != nullptr && block->address < end) {
    if (!is_hollow(block)) {
      const Address from = std::max(block->address, chunk->address);
      block = carve(block, from, part_of(chunk, block), &block);
      hand_over(chunk, block);
      --block->slot->users;
      make_hollow(block);
    }
    block = block->next;
  }
  chunk->block = covering(chunk, chunk->address);
  while (chunk->block->size < chunk->size) store_.absorb(chunk->block, chunk->block->next);
  arena_of(chunk->block).chunks.erase(store_.nodes(), {0, chunk->address});
  leave_ring(chunk);
  return true;
}

/// Makes a part of a chunk serve at another of its places, best where what lies beside it serves.
void VirtualHeap::hand_over(Chunk* chunk, const Block* piece) noexcept {
  const Bytes start = piece->address - chunk->address;
  const Bytes end = start + piece->size;
  const auto serves = [](const Chunk* place, Bytes offset) {
    return !is_hollow(covering(place, place->address + offset));
  };
  Chunk* place = chunk->twin;
  for (Chunk* at = chunk->twin; at != chunk; at = at->twin) {
    const bool beside =
        (start > 0 && serves(at, start - 1)) || (end < chunk->size && serves(at, end));
    if (beside) place = at;
  }
  const Address address = place->address + start;
  Block* block = covering(place, address);
  if (block->address < address) block = store_.cut(block, address - block->address);
  // What was lent from this place bit by bit, and came together elsewhere, is several blocks here.
  while (block->size < piece->size) {
    if (place->shadow == block->next) place->shadow = block;
    store_.absorb(block, block->next);
  }
  if (block->size > piece->size) store_.cut(block, piece->size);
  if (place->shadow == block) place->shadow = shadow_beside(place, block);
  block->slot = piece->slot;
  store_.settle(block);
}

/// Takes a record out of the ring of a chunk's records; what is left alone is shared no more.
void VirtualHeap::leave_ring(Chunk* chunk) noexcept {
  Chunk* before = chunk->twin;
  while (before->twin != chunk) before = before->twin;
  before->twin = chunk->twin == before ? nullptr : chunk->twin;
  chunk->twin = nullptr;
  chunk->shadow = nullptr;
  --shared_;
  shared_bytes_ -= chunk->size;
}

/// What a shared chunk could give back once it is brought together, in bytes: all of it, told by
/// one of its records, or nothing.
Bytes VirtualHeap::shared_and_idle(const Chunk* chunk) noexcept {
  bool idle = true;
  const Chunk* at = chunk;
  do {
    for_each_block(at, [&](const Block* block) {
      idle = is_hollow(block) || block->is_free() || block->state == Block::State::pending;
      return idle;
    });
    idle = idle && at->address >= chunk->address;
    at = at->twin;
  } while (idle && at != chunk);
  return idle ? chunk->size : 0;
}

/// Whether each place of a shared chunk serves some of its bytes, and all together each one once.
bool VirtualHeap::check_ring(const Chunk* chunk) noexcept {
  Bytes serving = 0;
  const Chunk* at = chunk;
  do {
    if (at->twin == nullptr || at->shadow == nullptr || !is_hollow(at->shadow)) return false;
    if (at->size != chunk->size || at->memory.handle != chunk->memory.handle) return false;
    const Bytes before = serving;
    for_each_block(at, [&](const Block* block) {
      if (!is_hollow(block)) serving += part_of(at, block);
      return true;
    });
    if (serving == before) return false;
    at = at->twin;
  } while (at != chunk);
  return serving == chunk->size;
}

}  // namespace fragshim
