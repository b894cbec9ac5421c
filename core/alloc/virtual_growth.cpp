// VirtualHeap and the device: addresses reserved once, memory mapped where it is missing.
#include <algorithm>

#include "core/alloc/accounts.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

// Mapping costs by the chunk, hardly by the byte, and most while the device is busy; but only whole
// free chunks can be gathered. So a chunk is this part of the most that was ever held (the peak,
// since a program that empties the cache will soon fill it again), within limits.
constexpr Bytes unit_share[2] = {256, 1024};           // [small]
constexpr Bytes least_unit[2] = {16 * MiB, 2 * MiB};   // [small]
constexpr Bytes most_unit[2] = {256 * MiB, 16 * MiB};  // [small]
// What may be held beyond the peak: one part in so many of it; and while a new peak is being set,
// a whole unit of at most this part of it, or every request on the way up would come as a chunk.
constexpr Bytes slack_share = 512;
constexpr Bytes climb_share = 64;
constexpr Bytes small_share = 8;  // one part in so many of the addresses is for small blocks
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

/// The size of new chunks in an arena for now, in bytes.
Bytes VirtualHeap::chunk_size(bool small) const noexcept {
  const Bytes share = store_.counters.reserved_peak / unit_share[small];
  return round_up(std::clamp(share, least_unit[small], most_unit[small]), device_.granularity());
}

/// The unit in which an arena grows as long as there is room.
Bytes VirtualHeap::growth_unit(bool small) const noexcept {
  // Under a split limit, what a request does not need would often serve nobody.
  if (config_.max_split_size != AllocationConfig::no_limit) return device_.granularity();
  return chunk_size(small);
}

/// What may be created for the request before anything is gathered: the heap then holds as much as
/// was ever alive at once, this request included, and a little more.
Bytes VirtualHeap::room_to_grow(const Request& request) const noexcept {
  if (request.scarce) return 0;
  const Counters& counters = store_.counters;
  const Bytes now = counters.allocated + request.size;
  const Bytes peak = std::max(counters.allocated_peak, now);
  const Bytes most = peak + peak / slack_share;
  const Bytes room = most > counters.reserved ? most - counters.reserved : 0;
  if (now <= counters.allocated_peak) return room;
  return std::max(room, std::min(growth_unit(request.small), now / climb_share));
}

/// How much memory a site gets: in whole units as long as there is room, else what is missing.
Bytes VirtualHeap::wanted_bytes(const Request& request, const Site& site,
                                Bytes room) const noexcept {
  const Bytes granularity = device_.granularity();
  const Bytes least = round_up(site.missing, granularity);
  // A block that will not be split must not be longer than it has to.
  const bool exact = request.tight || request.size >= config_.max_split_size;
  const Bytes units = exact ? least : round_up(site.missing, growth_unit(request.small));
  return std::min(std::clamp(room / granularity * granularity, least, units), site.hole->size);
}

/// The size of each of as few equal chunks of at most `most` bytes as make up `bytes`. Blocks that
/// end where a chunk ends leave nothing of it behind, and equal ones suit the next block of that
/// size better than large ones and a rest.
Bytes VirtualHeap::step_for(Bytes bytes, Bytes most) const noexcept {
  if (bytes == 0) return most;
  const Bytes count = (bytes + most - 1) / most;
  return round_up((bytes + count - 1) / count, device_.granularity());
}

/// Decides where the memory of a claimed site comes from, and has the host memory ready that its
/// records take. False: there is none.
bool VirtualHeap::plan(const Request& request, const Site& site, Supply* supply) noexcept {
  const Bytes room = room_to_grow(request);
  const Bytes wanted = wanted_bytes(request, site, room);
  if (wanted > room) gather(request, wanted - room, site.hole->size, supply);
  supply->created_bytes = wanted - std::min(wanted, supply->moved_bytes);
  supply->step = step_for(supply->created_bytes, chunk_size(request.small));
  return take_records(supply);
}

/// Takes the records that a supply needs from their pools. False: there is no host memory for them.
bool VirtualHeap::take_records(Supply* supply) noexcept {
  const std::size_t created = (supply->created_bytes + supply->step - 1) / supply->step;
  const std::size_t count = created + supply->moved_count;
  if (!chunk_pool_.prepare(count) || !hollow_pool_.prepare(1) || !store_.prepare(2) ||
      !store_.nodes().prepare(count + 4 * IndexTree::max_height)) {
    return false;
  }
  const auto take = [this](std::size_t n) {
    Chunk* chain = nullptr;
    for (; n > 0; --n) {
      Chunk* chunk = chunk_pool_.take();
      chunk->link = chain;
      chain = chunk;
    }
    return chain;
  };
  supply->created = take(created);
  if (supply->moved_count > 0) {
    supply->hollows = hollow_pool_.take();
    supply->hollows->first = take(supply->moved_count);
  }
  return true;
}

/// Brings memory to where it is missing for the request. The block is in no index.
Block* VirtualHeap::grow(Request& request, HeapLock& lock) noexcept {
  reclaim_hollows(lock);
  settle_recent();
  const Site site = find_site(request);
  if (site.hole == nullptr) return nullptr;
  claim(site);
  Supply supply;
  if (!plan(request, site, &supply)) {
    abandon(site, supply);
    return nullptr;
  }
  cut_back(site.hole, supply.created_bytes + supply.moved_bytes);
  if (!order_lenders(request.slot, supply, lock)) {
    abandon(site, supply);
    request.alone = true;
    return grow(request, lock);
  }
  const Address address = site.hole->address;
  Status mapped;
  {
    Unlocked unlocked(lock);
    mapped = carry_out(supply, address);
  }
  if (!mapped.ok()) {
    request.failure = mapped;
    abandon(site, supply);
    return nullptr;
  }
  add_chunks(arenas_[request.small], supply.created);
  Block* block = join(site);
  block->slot = request.slot;
  if (supply.moved != nullptr) {
    settle_moved(supply, address + supply.created_bytes, request);
    leave_behind(supply.hollows, request.slot->id, lock);
  }
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
void VirtualHeap::claim(const Site& site) noexcept {
  arena_of(site.hole).unmapped.erase(store_.nodes(), {0, site.hole->address});
  site.hole->state = Block::State::pending;
  for (Block* block : {site.below, site.above}) {
    if (block == nullptr) continue;
    store_.erase_free(block);
    block->state = Block::State::pending;
  }
}

/// Gives back what a claimed hole has beyond `bytes`.
void VirtualHeap::cut_back(Block* hole, Bytes bytes) noexcept {
  if (bytes < hole->size) make_hole(store_.cut(hole, bytes));
}

/// Gives records of a chain back that stand for nothing.
void VirtualHeap::give_records(Chunk* chunks) noexcept {
  while (chunks != nullptr) {
    Chunk* chunk = chunks;
    chunks = chunk->link;
    chunk_pool_.give(chunk);
  }
}

/// Undoes a claim, and what was planned for it.
void VirtualHeap::abandon(const Site& site, const Supply& supply) noexcept {
  give_records(supply.created);
  if (supply.hollows != nullptr) {
    give_records(supply.hollows->first);
    hollow_pool_.give(supply.hollows);
  }
  for (Chunk* chunk = supply.moved; chunk != nullptr;) {
    Chunk* next = chunk->link;
    keep_chunk(chunk);
    chunk = next;
  }
  make_hole(site.hole);
  for (Block* block : {site.below, site.above}) {
    if (block != nullptr) store_.settle(block);
  }
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

/// Creates and moves what was planned to the addresses from `address` on; all of it or nothing.
/// Called without the lock.
Status VirtualHeap::carry_out(const Supply& supply, Address address) noexcept {
  Status status = create_chunks(supply, address);
  if (!status.ok()) return status;
  status = map_moved(supply, address + supply.created_bytes);
  if (!status.ok()) drop_created(supply.created, nullptr);
  return status;
}

/// Creates and maps the new memory of a supply, filling in its chunks; all of it or nothing.
Status VirtualHeap::create_chunks(const Supply& supply, Address address) noexcept {
  Bytes done = 0;
  for (Chunk* chunk = supply.created; chunk != nullptr; chunk = chunk->link) {
    chunk->address = address + done;
    chunk->size = std::min(supply.step, supply.created_bytes - done);
    Status status = device_.create(chunk->size, &chunk->memory);
    if (status.ok()) {
      status = device_.map(chunk->address, chunk->size, chunk->memory);
      if (!status.ok()) device_.destroy(chunk->memory, chunk->size);
    }
    if (!status.ok()) {
      drop_created(supply.created, chunk);
      return status;
    }
    done += chunk->size;
  }
  return {};
}

/// Takes new memory away again, from `first` up to `end`.
void VirtualHeap::drop_created(const Chunk* first, const Chunk* end) noexcept {
  for (const Chunk* chunk = first; chunk != end; chunk = chunk->link) {
    device_.unmap(chunk->address, chunk->size);
    device_.destroy(chunk->memory, chunk->size);
  }
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
