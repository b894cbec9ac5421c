// What a heap keeps for each stream: the free blocks that are good for it, and what waits.
#pragma once

#include "core/alloc/address_table.hpp"
#include "core/alloc/block.hpp"
#include "core/alloc/fence_queue.hpp"
#include "core/alloc/ordered_index.hpp"

namespace fragshim {

struct StreamSlot {
  StreamId id = 0;
  OrderedIndex<Block> free[2];      // [small]: by (size, address)
  OrderedIndex<Block> unmapped[2];  // [small]: by (0, address); expandable segments
  FenceQueue returning;             // blocks of other streams, freed on this one
  std::uint64_t users = 0;          // live blocks, blocks on their way home, threads at work here
  std::uint32_t named = 0;          // threads that name the stream to the device right now
  std::uint64_t tried = 0;          // the last search that asked this slot for a block
  std::uint64_t ordered = 0;        // the last move that waits for this slot's stream
  bool dead = false;                // the stream is destroyed
  bool asked = false;               // dead: a thread records or asks its fence right now
  bool fenced = false;              // dead: a fence behind its last work was recorded
  Fence fence;                      // ... and has not passed yet
  StreamSlot* next = nullptr;       // every slot of the heap
};

/// The slots of one heap, by stream. Not thread-safe.
class SlotTable {
 public:
  /// The slot of a stream; null when the host has no memory for a new one.
  StreamSlot* find_or_create(StreamId id) noexcept {
    if (recent_ != nullptr && recent_->id == id && !recent_->dead) return recent_;
    StreamSlot* slot = table_.find(id);
    if (slot == nullptr) slot = create(id);
    if (slot != nullptr) recent_ = slot;
    return slot;
  }
  StreamSlot* find(StreamId id) const noexcept { return table_.find(id); }

  /// Makes the id free for another stream; the slot itself lives on until `recycle`.
  void forget(StreamSlot* slot) noexcept {
    table_.erase(slot->id);
    slot->dead = true;
  }

  /// Gives a forgotten slot back. It holds nothing any more.
  void recycle(StreamSlot* slot) noexcept {
    StreamSlot** link = &first_;
    while (*link != slot) link = &(*link)->next;
    *link = slot->next;
    if (recent_ == slot) recent_ = nullptr;
    --count_;
    pool_.give(slot);
  }

  StreamSlot* first() const noexcept { return first_; }
  std::uint64_t count() const noexcept { return count_; }

 private:
  StreamSlot* create(StreamId id) noexcept {
    if (!table_.prepare()) return nullptr;
    StreamSlot* slot = pool_.take();
    if (slot == nullptr) return nullptr;
    slot->id = id;
    slot->next = first_;
    first_ = slot;
    ++count_;
    table_.insert(id, slot);
    return slot;
  }

  AddressTable<StreamSlot> table_;
  Pool<StreamSlot> pool_;
  StreamSlot* first_ = nullptr;
  StreamSlot* recent_ = nullptr;
  std::uint64_t count_ = 0;
};

}  // namespace fragshim
