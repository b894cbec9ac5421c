// VirtualHeap and the device: addresses reserved once, memory mapped where it is missing.
#include <algorithm>

#include "core/alloc/accounts.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

constexpr Bytes small_share = 8;  // one part in so many of the addresses is for small blocks
constexpr int holes_looked_at = 64;
constexpr Bytes least_span = GiB;

}  // namespace

/// Reserves the heap's addresses at its first request: fewer where a process may not have so many
/// (ulimit -v, a sanitizer's shadow). False: the device has none, which is no want of memory.
bool VirtualHeap::reserve_range(Request& request, HeapLock& lock) noexcept {
  if (base_.load(std::memory_order_relaxed) != 0) return true;
  Address base = 0;
  Bytes span = options_.span;
  Status reserved;
  {
    Unlocked unlocked(lock);
    while (!(reserved = device_.reserve(span, &base)).ok() && span / 2 >= least_span) span /= 2;
  }
  if (!reserved.ok()) {
    request.failure = {Outcome::unsupported, reserved.code};
    return false;
  }
  if (base_.load(std::memory_order_relaxed) != 0 || !store_.prepare(2)) {
    Unlocked unlocked(lock);
    device_.unreserve(base, span);
    return base_.load(std::memory_order_relaxed) != 0;
  }
  span_ = span;
  const Bytes small_span = round_up(span / small_share, device_.granularity());
  const Bytes spans[2] = {span - small_span, small_span};
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

/// Brings memory to where it is missing for the request. The block is in no index.
Block* VirtualHeap::grow(Request& request, HeapLock& lock) noexcept {
  reclaim_hollows(lock);
  settle_recent();
  Site site = find_site(request);
  if (site.hole == nullptr) return nullptr;
  claim(request, site);
  Supply supply;
  const bool planned = plan(request, site, &supply);
  // What was lent from such a place may have been in use there on any stream before.
  if (supply.reunited != nullptr) leave_behind(supply.reunited, all_streams, lock);
  if (!planned) {
    abandon(site, supply);
    return nullptr;
  }
  cut_back(site.hole, supply.addresses());
  place_loans(&site, &supply);
  if (!order_lenders(request.slot, supply, lock)) {
    abandon(site, supply);
    request.alone = true;
    return grow(request, lock);
  }
  const Address address = site.hole->address;
  Status mapped;
  {
    Unlocked unlocked(lock);
    mapped = carry_out(&supply, address);
  }
  if (!mapped.ok()) {
    const bool others = leave_where_it_is(supply.refused, &request, mapped);
    abandon(site, supply);
    if (others) return grow(request, lock);
    request.failure = mapped;
    return nullptr;
  }
  add_chunks(arenas_[request.small], supply.created);
  Block* block = join(site);
  block->slot = request.slot;
  if (supply.moved != nullptr || supply.lent() > 0) ++store_.counters.stitches;
  settle_loans(supply, address, request.small);
  if (supply.hollows != nullptr) {
    settle_moved(supply, address + supply.tail.size + supply.created_bytes, request);
    leave_behind(supply.hollows, request.slot->id, lock);
  }
  return block;
}

/// Where several threads launch work, CUDA's driver comes to refuse a second mapping, to whichever
/// addresses, of some chunk that it has moved before (error 999; one in 20,000 moves on an H200,
/// none by one thread alone). Its present mapping stays good: only the memory cannot be moved or
/// lent any more, and goes once it lies free. True: the request is to be tried with other memory.
bool VirtualHeap::leave_where_it_is(Chunk* refused, Request* request, Status status) noexcept {
  if (refused == nullptr || status.outcome != Outcome::failed) return false;
  Chunk* place = refused;
  do {
    place->stays = true;
    place = place->twin;
  } while (place != nullptr && place != refused);
  ++request->refusals;
  return true;
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
  auto at = holes.first();
  for (; at && looked_at < holes_looked_at; at = at.next(), ++looked_at) consider(at.get());
  if (const auto last = holes.last()) consider(last.get());
  // Once the addresses at the end are used up, any hole has to do.
  for (; at && best.hole == nullptr; at = at.next()) consider(at.get());
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

/// Takes a site out of everybody's reach.
void VirtualHeap::claim(const Request& request, const Site& site) noexcept {
  arena_of(site.hole).unmapped.erase(store_.nodes(), {0, site.hole->address});
  site.hole->state = Block::State::pending;
  if (site.above != nullptr) leave_surplus(request, site);
  for (Block* block : {site.below, site.above}) {
    if (block == nullptr) continue;
    store_.erase_free(block);
    block->state = Block::State::pending;
  }
}

/// Of the block above a hole only as much is needed as completes the request: the rest stays free,
/// and can be gathered for it.
void VirtualHeap::leave_surplus(const Request& request, const Site& site) noexcept {
  const Bytes below = site.below != nullptr ? site.below->size : 0;
  const Bytes needed = request.size - below - site.hole->size;
  if (site.above->size - needed < device_.granularity() || !store_.prepare(2)) return;
  store_.erase_free(site.above);
  store_.insert_free(store_.cut(site.above, needed));
  store_.insert_free(site.above);
}

/// Gives back what a claimed hole has beyond `bytes`.
void VirtualHeap::cut_back(Block* hole, Bytes bytes) noexcept {
  if (bytes < hole->size) make_hole(store_.cut(hole, bytes));
}

/// The one block that a site has become.
Block* VirtualHeap::join(const Site& site) noexcept {
  Block* block = site.hole;
  if (site.below != nullptr) {
    block = site.below;
    store_.absorb(block, site.hole);
  }
  if (site.above != nullptr) store_.absorb(block, site.above);
  return block;
}

void VirtualHeap::add_chunks(Arena& arena, Chunk* chunks) noexcept {
  while (chunks != nullptr) {
    Chunk* chunk = chunks;
    chunks = chunk->link;
    arena.chunks.insert(store_.nodes(), {0, chunk->address}, chunk);
    accounts::reserved(store_.counters, chunk->size);
  }
}

/// Makes a block in no index into addresses whose memory serves elsewhere, or is on its way out.
void VirtualHeap::make_hollow(Block* block) noexcept {
  block->state = Block::State::hollow;
  block->slot = &nobody_;
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
