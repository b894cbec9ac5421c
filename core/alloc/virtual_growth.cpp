// VirtualHeap and the device: addresses reserved once, memory mapped where it is missing.
#include <algorithm>
#include <bit>

#include "core/alloc/accounts.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

// Mapping costs by the chunk, hardly by the byte, and most while the device is busy: so each growth
// is one chunk, and no smaller than this part of the most that was ever held. The peak, since a
// program that empties the cache will soon fill it again.
constexpr Bytes least_growth_share[2] = {32, 128};            // [small]
constexpr Bytes most_least_growth[2] = {64 * MiB, 16 * MiB};  // [small]
constexpr Bytes largest_chunk = GiB;  // a chunk goes back only when all of it is free
constexpr Bytes small_share = 8;      // one part in so many of the addresses is for small blocks
constexpr int holes_looked_at = 64;

}  // namespace

/// Reserves the heap's addresses at its first request. False: the device has none.
bool VirtualHeap::reserve_range(HeapLock& lock) noexcept {
  if (base_.load(std::memory_order_relaxed) != 0) return true;
  Address base = 0;
  Status reserved;
  {
    Unlocked unlocked(lock);
    reserved = device_.reserve(options_.span, &base);
  }
  if (!reserved.ok()) return false;
  if (base_.load(std::memory_order_relaxed) != 0 || !store_.prepare(2)) {
    Unlocked unlocked(lock);
    device_.unreserve(base, options_.span);
    return base_.load(std::memory_order_relaxed) != 0;
  }
  const Bytes small_span = round_up(options_.span / small_share, device_.granularity());
  const Bytes spans[2] = {options_.span - small_span, small_span};
  const Address bases[2] = {base + small_span, base};
  for (const bool small : {false, true}) {
    Arena& arena = arenas_[small];
    arena.base = bases[small];
    arena.span = spans[small];
    arena.first = store_.make(arena.base, arena.span, &nobody_, small);
    make_hole(arena.first);
  }
  base_.store(base, std::memory_order_release);
  return true;
}

/// The unit in which an arena grows for now, in bytes.
Bytes VirtualHeap::growth_unit(bool small) const noexcept {
  const Bytes granularity = device_.granularity();
  if (config_.max_split_size != AllocationConfig::no_limit) return granularity;
  const Bytes share = std::bit_floor(store_.counters.reserved_peak / least_growth_share[small] + 1);
  const Bytes most = std::max(granularity, most_least_growth[small]);
  return round_up(std::clamp(share, granularity, most), granularity);
}

/// Maps what is missing for the request, less than a growth unit beyond it. The block is in no
/// index.
Block* VirtualHeap::grow(Request& request, HeapLock& lock) noexcept {
  const Site site = find_site(request);
  if (site.hole == nullptr || !store_.prepare(2)) return nullptr;
  // A block that will not be split must not be longer than it has to.
  const bool exact = request.tight || request.size >= config_.max_split_size;
  const Bytes unit = exact ? device_.granularity() : growth_unit(request.small);
  const Bytes bytes = std::min(round_up(site.missing, unit), site.hole->size);
  Chunk* chunks = make_chunks((bytes + largest_chunk - 1) / largest_chunk);
  if (chunks == nullptr) return nullptr;
  Block* hole = claim(site, bytes);
  Status mapped;
  {
    Unlocked unlocked(lock);
    mapped = map_chunks(hole->address, bytes, largest_chunk, chunks);
  }
  Arena& arena = arenas_[request.small];
  while (chunks != nullptr) {
    Chunk* chunk = chunks;
    chunks = chunk->link;
    if (mapped.ok()) {
      arena.chunks.insert(store_.nodes(), {0, chunk->address}, chunk);
      accounts::reserved(store_.counters, chunk->size);
    } else {
      chunk_pool_.give(chunk);
    }
  }
  if (!mapped.ok()) {
    request.failure = mapped;
    unclaim(site);
    return nullptr;
  }
  Block* block = hole;
  if (site.below != nullptr) {
    block = site.below;
    store_.absorb(block, hole);
  }
  if (site.above != nullptr) store_.absorb(block, site.above);
  block->slot = request.slot;
  return block;
}

/// Where the request can be served with the least new memory; no hole: nowhere.
VirtualHeap::Site VirtualHeap::find_site(const Request& request) const noexcept {
  const OrderedIndex<Block>& holes = arenas_[request.small].unmapped;
  Site best;
  const auto consider = [&](Block* hole) {
    const Site site = site_at(hole, request);
    if (site.hole != nullptr && (best.hole == nullptr || site.missing < best.missing)) best = site;
  };
  int looked_at = 0;
  for (auto at = holes.first(); at && looked_at < holes_looked_at; at = at.next(), ++looked_at) {
    consider(at.get());
  }
  if (const auto last = holes.last()) consider(last.get());
  return best;
}

VirtualHeap::Site VirtualHeap::site_at(Block* hole, const Request& request) const noexcept {
  const auto usable = [&](const Block* block) {
    return block != nullptr && block->is_free() &&
           (block->slot == request.slot || block->slot == idle_) && block->size < request.size;
  };
  Block* below = usable(hole->prev) ? hole->prev : nullptr;
  Block* above = usable(hole->next) ? hole->next : nullptr;
  const Bytes have = below != nullptr ? below->size : 0;
  if (have + hole->size >= request.size) return {below, hole, nullptr, request.size - have};
  if (above != nullptr && have + hole->size + above->size >= request.size) {
    return {below, hole, above, hole->size};
  }
  return {};
}

/// Takes a site out of everybody's reach; returns its hole, cut to the `bytes` that get memory.
Block* VirtualHeap::claim(const Site& site, Bytes bytes) noexcept {
  Block* hole = site.hole;
  OrderedIndex<Block>& holes = arena_of(hole).unmapped;
  holes.erase(store_.nodes(), {0, hole->address});
  if (bytes < hole->size) {
    Block* rest = store_.cut(hole, bytes);
    holes.insert(store_.nodes(), {0, rest->address}, rest);
  }
  hole->state = Block::State::pending;
  for (Block* block : {site.below, site.above}) {
    if (block == nullptr) continue;
    store_.erase_free(block);
    block->state = Block::State::pending;
  }
  return hole;
}

void VirtualHeap::unclaim(const Site& site) noexcept {
  make_hole(site.hole);
  for (Block* block : {site.below, site.above}) {
    if (block != nullptr) store_.settle(block);
  }
}

/// Records for `count` chunks, chained; null when the host has no memory for them and for the
/// index entries they will need.
Chunk* VirtualHeap::make_chunks(std::size_t count) noexcept {
  if (!chunk_pool_.prepare(count)) return nullptr;
  if (!store_.nodes().prepare(count + 2 * IndexTree::max_height)) return nullptr;
  Chunk* chain = nullptr;
  for (; count > 0; --count) {
    Chunk* chunk = chunk_pool_.take();
    chunk->link = chain;
    chain = chunk;
  }
  return chain;
}

/// Creates and maps memory at [address, address + size) in steps, filling in `chunks`; all of it
/// or none. Called without the lock.
Status VirtualHeap::map_chunks(Address address, Bytes size, Bytes step, Chunk* chunks) noexcept {
  Status status;
  Chunk* at = chunks;
  for (Bytes done = 0; done < size; done += step, at = at->link) {
    at->address = address + done;
    at->size = std::min(step, size - done);
    status = device_.create(at->size, &at->memory);
    if (!status.ok()) break;
    status = device_.map(at->address, at->size, at->memory);
    if (status.ok()) continue;
    device_.destroy(at->memory, at->size);
    break;
  }
  if (status.ok()) return status;
  for (Chunk* undo = chunks; undo != at; undo = undo->link) {
    device_.unmap(undo->address, undo->size);
    device_.destroy(undo->memory, undo->size);
  }
  return status;
}

/// Makes a block in no index into addresses without memory, joined with such neighbours.
void VirtualHeap::make_hole(Block* block) noexcept {
  OrderedIndex<Block>& holes = arena_of(block).unmapped;
  const auto joins = [](const Block* other) {
    return other != nullptr && other->state == Block::State::unmapped;
  };
  block->state = Block::State::unmapped;
  block->slot = &nobody_;
  if (joins(block->next)) {
    holes.erase(store_.nodes(), {0, block->next->address});
    store_.absorb(block, block->next);
  }
  if (joins(block->prev)) {
    block = block->prev;
    store_.absorb(block, block->next);
    return;  // the lower one is in the index by its own address already
  }
  holes.insert(store_.nodes(), {0, block->address}, block);
}

}  // namespace fragshim
