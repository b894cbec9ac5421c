// VirtualHeap deciding where memory comes from: how much may be created, and what lies free and can
// be moved or lent instead.
#include <algorithm>
#include <bit>

#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

constexpr ChunkSizes small_chunks{1024, 2 * MiB, 16 * MiB};
// What may be held beyond the peak: one part in so many of it; and while a new peak is being set,
// a whole unit of at most this part of it, or every request on the way up would come as a chunk.
constexpr Bytes slack_share = 512;
constexpr Bytes climb_share = 64;
// While more than this is held beyond the peak, one part in so many of it, new chunks are half as
// large: it consists of gaps smaller than a chunk. The goal is one part in a hundred.
constexpr Bytes waste_share = 128;
// A cache that was emptied is filled again, chunk by chunk: one part in so many of what is gone.
constexpr Bytes refill_share = 32;
// How many mappings the device may refuse to a request before it gets only what is created.
constexpr int most_refusals = 8;
// How often chunks are halved where memory is short: gaps are what requests die of there.
constexpr int most_halvings = 2;

}  // namespace

/// The size of new chunks in an arena for now, in bytes. Much held beyond the peak makes it smaller
/// for that time, little held compared with the most so far larger, and the first requests that
/// only the last resort serves make it smaller for good.
Bytes VirtualHeap::chunk_size(bool small) const noexcept {
  const ChunkSizes& sizes = small ? small_chunks : options_.chunks;
  const Counters& counters = store_.counters;
  const Bytes peak = counters.allocated_peak;
  const Bytes share = counters.reserved > peak + peak / waste_share ? 2 * sizes.share : sizes.share;
  const Bytes refill = small ? 0 : (counters.reserved_peak - counters.reserved) / refill_share;
  const Bytes wanted = std::max(counters.reserved_peak / share, refill);
  const Bytes size = std::clamp(wanted, sizes.least, sizes.most);
  const int halvings = std::min(static_cast<int>(std::bit_width(counters.retries)), most_halvings);
  return round_up(size >> halvings, device_.granularity());
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
  if (wanted > room && request.refusals < most_refusals) {
    gather(request, wanted - room, site.hole->size, supply);
    borrow(request, site, room, wanted, supply);
  }
  supply->created_bytes = still_missing(supply->lent() > 0 ? site.missing : wanted, *supply);
  supply->step = step_for(supply->created_bytes, chunk_size(request.small));
  return take_records(supply);
}

/// What is left to create of `bytes`, in whole units of the device.
Bytes VirtualHeap::still_missing(Bytes bytes, const Supply& supply) const noexcept {
  const Bytes found = supply.moved_bytes + supply.lent();
  return round_up(bytes - std::min(bytes, found), device_.granularity());
}

/// Takes the records that a supply needs from their pools. False: there is no host memory for them.
bool VirtualHeap::take_records(Supply* supply) noexcept {
  const std::size_t created = (supply->created_bytes + supply->step - 1) / supply->step;
  const std::size_t count = created + supply->moved_count;
  if (!chunk_pool_.prepare(count) || !hollow_pool_.prepare(1) || !store_.prepare(4) ||
      !store_.nodes().prepare(count + 8 * IndexTree::max_height)) {
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
  if (supply->moved_count > 0 || supply->leaving != nullptr) {
    supply->hollows = hollow_pool_.take();
    supply->hollows->first = take(supply->moved_count);
  }
  return true;
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
  if (supply.leaving != nullptr) keep_chunk(supply.leaving);
  make_hole(site.hole);
  abandon_loan(supply.tail);
  abandon_loan(supply.head);
  for (Block* block : {site.below, site.above}) {
    if (block != nullptr) store_.settle(block);
  }
}

/// Creates, moves and lends what was planned to the addresses from `address` on; all of it or
/// nothing. Called without the lock.
Status VirtualHeap::carry_out(Supply* supply, Address address) noexcept {
  const Address own = address + supply->tail.size;
  Status status = create_chunks(*supply, own);
  if (!status.ok()) return status;
  status = map_moved(supply, own + supply->created_bytes);
  if (status.ok()) {
    status = map_loans(supply, address);
    if (!status.ok()) unmap_moved(*supply, nullptr, own + supply->created_bytes);
  }
  if (!status.ok()) drop_created(supply->created, nullptr);
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

}  // namespace fragshim
