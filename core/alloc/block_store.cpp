#include "core/alloc/block_store.hpp"

#include <algorithm>
#include <bit>

namespace fragshim {

Block* BlockStore::make(Address address, Bytes size, StreamSlot* slot, bool small) noexcept {
  Block* block = pool_.take();
  block->address = address;
  block->size = size;
  block->slot = slot;
  block->small = small;
  return block;
}

Block* BlockStore::cut(Block* block, Bytes size) noexcept {
  Block* rest = make(block->address + size, block->size - size, block->slot, block->small);
  rest->state = block->state;
  rest->expandable = block->expandable;
  rest->held = block->held;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

void BlockStore::absorb(Block* block, Block* behind) noexcept {
  block->size += behind->size;
  block->next = behind->next;
  if (block->next != nullptr) block->next->prev = block;
  pool_.give(behind);
}

void BlockStore::settle(Block* block) noexcept {
  if (block->held) {
    settle_held(block);
    return;
  }
  const auto joins = [this, block](const Block* other, Bytes with) {
    return other != nullptr && other->is_free() && other->slot == block->slot &&
           other->size + with < merge_limit;
  };
  Block* prev = block->prev;
  Block* next = block->next;
  const bool down = joins(prev, block->size);
  const bool up = joins(next, block->size + (down ? prev->size : 0));
  if (!down && !up) {
    insert_free(block);
    return;
  }
  OrderedIndex<Block>& free = block->slot->free[block->small];
  Block* indexed = down ? prev : next;
  if (down && up) {
    erase_free(next);
    absorb(block, next);
    ++counters.merges;
  }
  const auto at = free.lower_bound({indexed->size, indexed->address});
  Block* lower = down ? prev : block;
  absorb(lower, lower->next);
  ++counters.merges;
  lower->state = Block::State::free;
  lower->born = searches[lower->small];
  free.rekey(nodes_, at, {lower->size, lower->address}, lower);
}

/// The same in a pinned segment, whose free blocks are in no index.
void BlockStore::settle_held(Block* block) noexcept {
  block->state = Block::State::free;
  Block* prev = block->prev;
  if (block->next != nullptr && block->next->is_free()) absorb(block, block->next);
  if (prev != nullptr && prev->is_free()) absorb(prev, block);
}

/// Among a million blocks the neighbours of a random one are in no cache: brings them nearer.
static void prefetch_neighbours(const Block* block) noexcept {
  __builtin_prefetch(block->prev, 1);
  __builtin_prefetch(block->next, 1);
}

/// Joins a block in no index with the next of its chain, also in none, where the two are
/// neighbours; null where they are not.
Block* BlockStore::join_pair(Block* block, Block* next) noexcept {
  if (next->slot != block->slot || next->held || block->held ||
      block->size + next->size >= merge_limit) {
    return nullptr;
  }
  const bool up = block->next == next;
  if (!up && next->next != block) return nullptr;
  Block* lower = up ? block : next;
  absorb(lower, lower->next);
  ++counters.merges;
  return lower;
}

void BlockStore::settle_chain(Block* chain) noexcept {
  constexpr int distance = 4;  // blocks ahead: as long as a line from memory takes
  Block* ahead = chain;
  for (int i = 0; i < distance && ahead != nullptr; ++i, ahead = ahead->link) {
    prefetch_neighbours(ahead);
  }
  // What lies side by side is mostly freed one after the other: joined first, it takes one search.
  Block* joined = nullptr;
  while (chain != nullptr) {
    Block* next = chain->link;
    if (ahead != nullptr) {
      prefetch_neighbours(ahead);
      ahead = ahead->link;
    }
    Block* both = joined == nullptr ? chain : join_pair(joined, chain);
    if (both == nullptr) {
      settle(joined);
      both = chain;
    }
    joined = both;
    chain = next;
  }
  if (joined != nullptr) settle(joined);
}

void BlockStore::insert_free(Block* block) noexcept {
  block->state = Block::State::free;
  block->born = searches[block->small];
  if (block->held) return;
  block->slot->free[block->small].insert(nodes_, {block->size, block->address}, block);
}

void BlockStore::erase_free(Block* block) noexcept {
  if (block->held) return;
  block->slot->free[block->small].erase(nodes_, {block->size, block->address});
}

Block* BlockStore::take(StreamSlot* slot, bool small, FreeCursor at, Bytes size,
                        bool split) noexcept {
  Block* block = at.get();
  live_.prefetch(block->address);  // make_live comes for it
  OrderedIndex<Block>& free = slot->free[small];
  if (split) {
    block->state = Block::State::free;  // the rest's state
    Block* rest = cut(block, size);
    rest->born = searches[rest->small];
    free.rekey(nodes_, at, {rest->size, rest->address}, rest);
    ++counters.splits;
  } else {
    free.erase(nodes_, at);
  }
  block->state = Block::State::pending;
  return block;
}

void BlockStore::count_free(Usage* usage) const noexcept {
  for (const StreamSlot* slot = slots.first(); slot != nullptr; slot = slot->next) {
    for (const OrderedIndex<Block>& free : slot->free) {
      if (const auto last = free.last()) {
        usage->largest_free = std::max(usage->largest_free, last->size);
      }
      usage->free_blocks += free.size();
      for (auto at = free.first(); at; at = at.next()) {
        ++usage->free_histogram[static_cast<std::size_t>(std::bit_width(at->size) - 1)];
      }
    }
  }
}

/// What is wrong with a block in its place, or null.
const char* BlockStore::wrong_with(const Block* block, const Block* prev, Address expected) const {
  if (block->address != expected) return "blocks leave a gap or overlap";
  if (block->prev != prev) return "the links of neighbouring blocks disagree";
  if (block->size == 0 || block->size % 512 != 0) return "a block's size is no multiple of 512";
  const bool joinable = block->is_free() || block->state == Block::State::unmapped;
  if (joinable && prev != nullptr && prev->state == block->state && prev->slot == block->slot &&
      merge_limit == unlimited) {
    return "two free neighbours were not joined";
  }
  if (block->state == Block::State::live && live_.find(block->address) != block) {
    return "a live block is missing in the table of addresses";
  }
  if (block->is_free() && !block->held) {
    const auto at = block->slot->free[block->small].lower_bound({block->size, block->address});
    if (!at || at.get() != block) return "a free block is missing in its index";
  }
  return nullptr;
}

bool BlockStore::check_run(const Block* first, Address address, Bytes size, Tally* tally,
                           std::string* why) const {
  Address expected = address;
  const Block* prev = nullptr;
  for (const Block* block = first; block != nullptr; prev = block, block = block->next) {
    if (const char* wrong = wrong_with(block, prev, expected)) {
      *why = wrong;
      return false;
    }
    expected += block->size;
    if (has_memory(block->state)) tally->mapped += block->size;
    if (block->is_free() && !block->held) ++tally->free_blocks;
    if (block->state != Block::State::live) continue;
    tally->live += block->size;
    tally->requested += block->requested;
    ++tally->live_blocks;
  }
  if (expected == address + size) return true;
  *why = "blocks do not fill their segment";
  return false;
}

bool BlockStore::check_totals(const Tally& tally, std::string* why) const {
  std::uint64_t indexed = 0;
  for (const StreamSlot* slot = slots.first(); slot != nullptr; slot = slot->next) {
    for (const OrderedIndex<Block>& free : slot->free) {
      if (!free.check()) *why = "a free index is out of order";
      indexed += free.size();
    }
  }
  if (tally.free_blocks != indexed) *why = "free blocks and the free indexes differ in number";
  if (tally.live != counters.allocated) *why = "live blocks do not add up to allocated";
  if (tally.requested != counters.requested) *why = "live blocks do not add up to requested";
  if (tally.live_blocks != counters.live_blocks || tally.live_blocks != live_.size()) {
    *why = "live blocks and the table of addresses differ in number";
  }
  if (tally.mapped != counters.reserved) *why = "mapped blocks do not add up to reserved";
  return why->empty();
}

void BlockStore::walk_run(const Block* first, Address segment, BlockVisitor& visitor) {
  for (const Block* block = first; block != nullptr; block = block->next) {
    visitor.visit(
        {block->address, block->size, block->requested, segment, block->slot->id, block->state});
  }
}

}  // namespace fragshim
