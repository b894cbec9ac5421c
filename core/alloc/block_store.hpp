// The blocks of a heap and everything they are found by: neighbours by address, free ones by size,
// live ones by address. Mechanism only: it splits, joins and finds what it is told to.
#pragma once

#include <string>

#include "core/alloc/accounts.hpp"
#include "core/alloc/address_table.hpp"
#include "core/alloc/block.hpp"
#include "core/alloc/heap.hpp"
#include "core/alloc/ordered_index.hpp"
#include "core/alloc/slots.hpp"

namespace fragshim {

/// Guarded by the lock of the heap that owns it. What cannot fail is noexcept and returns nothing:
/// `prepare` sees to the host memory beforehand.
class BlockStore {
 public:
  /// Host memory for making `count` more blocks and one of them live, and for putting every live
  /// block back into an index later: a free must never fail. False: there is none.
  bool prepare(std::size_t count) noexcept {
    return live_.prepare() && pool_.prepare(count) &&
           nodes_.prepare(counters.live_blocks / (IndexNode::capacity / 2) +
                          (count + 1) * IndexTree::max_height);
  }

  /// A new block in no list and no index. `prepare` came before.
  Block* make(Address address, Bytes size, StreamSlot* slot, bool small) noexcept;
  /// Drops a block that is in no list and no index.
  void drop(Block* block) noexcept { pool_.give(block); }

  /// Cuts a block in no index in two; returns the upper part, in no index and of the same state.
  Block* cut(Block* block, Bytes size) noexcept;
  /// Joins a block with the one behind it, neither in an index. The lower one stays, so the first
  /// block of a segment never changes.
  void absorb(Block* block, Block* behind) noexcept;

  /// Makes a block free: joined with free neighbours of its slot, and found by later requests.
  void settle(Block* block) noexcept;
  /// `settle` for each block of a chain through Block::link.
  void settle_chain(Block* chain) noexcept;
  using FreeCursor = OrderedIndex<Block>::Cursor;
  /// Takes the free block a cursor stands on out of its index, slot->free[small], cutting it to
  /// `size` if `split`; the rest stays free.
  Block* take(StreamSlot* slot, bool small, FreeCursor at, Bytes size, bool split) noexcept;
  void insert_free(Block* block) noexcept;
  void erase_free(Block* block) noexcept;

  /// Makes a block in no index live, for `requested` bytes.
  void make_live(Block* block, Bytes requested) noexcept;
  /// Ends a live block's life; null if none starts there. It is then in no index.
  Block* end_life(Address address) noexcept;

  const AddressTable<Block>& live() const noexcept { return live_; }
  IndexNodes& nodes() noexcept { return nodes_; }

  /// The free blocks' part of a Usage: number, histogram, largest.
  void count_free(Usage* usage) const noexcept;
  /// Verifies the blocks from `first` on, which must fill [address, address + size) without gap.
  /// Adds what it finds to `tally`; false: `why` says what is wrong.
  struct Tally {
    Bytes live = 0, requested = 0, mapped = 0;
    std::uint64_t live_blocks = 0, free_blocks = 0;
  };
  bool check_run(const Block* first, Address address, Bytes size, Tally* tally,
                 std::string* why) const;
  /// Verifies the totals, once every run has been checked.
  bool check_totals(const Tally& tally, std::string* why) const;
  /// Shows the blocks from `first` on.
  static void walk_run(const Block* first, Address segment, BlockVisitor& visitor);

  Counters counters;
  SlotTable slots;
  /// Free neighbours are joined as long as the whole stays below this.
  Bytes merge_limit = unlimited;
  std::uint32_t searches[2] = {};  // [small]: free blocks are stamped with it

 private:
  void settle_held(Block* block) noexcept;
  Block* join_pair(Block* block, Block* next) noexcept;
  const char* wrong_with(const Block* block, const Block* prev, Address expected) const;

  BlockPool pool_;
  IndexNodes nodes_;
  AddressTable<Block> live_;
};

// Every allocation and every free comes through these.

inline void BlockStore::make_live(Block* block, Bytes requested) noexcept {
  block->state = Block::State::live;
  block->requested = requested;
  live_.insert(block->address, block);
  accounts::allocated(counters, requested, block->size);
}

inline Block* BlockStore::end_life(Address address) noexcept {
  Block* block = live_.erase(address);
  if (block == nullptr) return nullptr;
  accounts::freed(counters, block->requested, block->size);
  block->requested = 0;
  block->state = Block::State::pending;
  return block;
}

}  // namespace fragshim
