#include "core/alloc/virtual_heap.hpp"

#include <new>
#include <utility>

#include "core/alloc/accounts.hpp"
#include "core/alloc/policy.hpp"

namespace fragshim {
namespace {

constexpr Bytes largest_request = Bytes{1} << 56;  // rounding never wraps below this
constexpr StreamId no_stream = all_streams - 1;    // the name of the idle blocks' slot
constexpr std::uint32_t look_after = 32;           // allocations between looks at returning blocks

}  // namespace

VirtualHeap::VirtualHeap(Device& device, const AllocationConfig& config,
                         const VirtualOptions& options)
    : device_(device),
      config_(config),
      options_(options),
      mutex_(options.callers),
      idle_(store_.slots.find_or_create(no_stream)),
      everywhere_(store_.slots.find_or_create(all_streams)) {
  // A block of max_split_size or more serves no smaller request: joined without a limit, all free
  // memory would soon be one such block.
  store_.merge_limit = config_.max_split_size;
  if (idle_ == nullptr || everywhere_ == nullptr) throw std::bad_alloc();
}

Grant VirtualHeap::allocate(Bytes size, StreamId stream) noexcept {
  HeapLock lock(mutex_);
  Request request{};
  request.failure.outcome = Outcome::out_of_memory;
  request.requested = size;
  if (size <= largest_request) {
    request.size = policy::round_size(config_, size);
    request.small = policy::is_small(request.size);
    request.slot = store_.slots.find_or_create(stream);
  }
  if (request.slot != nullptr && store_.prepare(1)) {
    if (returning_ > 0 && ++operations_ % look_after == 0) collect_returning(lock);
    Block* block = take_recent(request);
    if (block == nullptr) block = take_own(request);
    if (block == nullptr) block = fit(obtain(request, lock), request);
    if (block != nullptr) {
      ++request.slot->users;
      store_.make_live(block, request.requested);
      return {block->address, {}};
    }
  }
  accounts::refused(store_.counters, request.failure);
  return {0, request.failure};
}

Status VirtualHeap::free(Address address, StreamId stream) noexcept {
  HeapLock lock(mutex_);
  Block* block = store_.end_life(address);
  if (block == nullptr) return {Outcome::not_owned};
  StreamSlot* home = block->slot;
  if (home->id == stream && stream != all_streams && !home->dead) {
    --home->users;
    settle_recent();
    recent_ = block;
    return {};
  }
  StreamSlot* slot = store_.slots.find_or_create(stream);
  if (slot == nullptr) slot = everywhere_;  // no host memory: a wider fence does as well
  slot->returning.push(block);
  returning_ += block->size;
  return {};
}

bool VirtualHeap::splits(const Request& request, Bytes block) const noexcept {
  return block - request.size >= policy::min_block && request.size < config_.max_split_size;
}

/// The block freed last, where it is what the request asks for to the byte.
Block* VirtualHeap::take_recent(const Request& request) noexcept {
  if (recent_ == nullptr || recent_->size != request.size || recent_->slot != request.slot) {
    return nullptr;
  }
  return std::exchange(recent_, nullptr);
}

/// Makes the block freed last free like every other.
void VirtualHeap::settle_recent() noexcept {
  if (recent_ != nullptr) store_.settle(std::exchange(recent_, nullptr));
}

/// Best fit among a slot's free blocks, cut to size.
Block* VirtualHeap::take_free(StreamSlot* slot, const Request& request) noexcept {
  const auto at = slot->free[request.small].lower_bound({request.size, 0});
  if (!at) return nullptr;
  const Bytes found = at.key().size();  // the block itself may be far away
  if (!policy::may_serve(config_, found, request.size)) return nullptr;
  return store_.take(slot, request.small, at, request.size, splits(request, found));
}

/// Best fit among what the stream may use at once.
Block* VirtualHeap::take_own(const Request& request) noexcept {
  settle_recent();
  Block* block = take_free(request.slot, request);
  if (block != nullptr || idle_->free[request.small].empty()) return block;
  block = take_free(idle_, request);
  if (block != nullptr) block->slot = request.slot;
  return block;
}

/// Splits off what the request does not need from a block in no index. Null: there was no block,
/// or no host memory for the record of the rest.
Block* VirtualHeap::fit(Block* block, const Request& request) noexcept {
  if (block == nullptr) return nullptr;
  if (!store_.prepare(1)) {
    store_.settle(block);
    return nullptr;
  }
  if (splits(request, block->size)) {
    store_.settle(store_.cut(block, request.size));
    ++store_.counters.splits;
  }
  return block;
}

Bytes VirtualHeap::trim(Bytes keep) noexcept {
  HeapLock lock(mutex_);
  const Counted here(at_work_);
  ++store_.counters.trims;
  collect_returning(lock);
  if (dead_streams_ > 0) bury_dead_streams(lock);
  return release(keep, lock);
}

bool VirtualHeap::contains(Address address) const noexcept {
  const Address base = base_.load(std::memory_order_acquire);
  return base != 0 && address - base < span_;
}

void VirtualHeap::reset_peaks(bool allocated, bool reserved) noexcept {
  HeapLock lock(mutex_);
  accounts::reset_peaks(store_.counters, allocated, reserved);
}

Counters VirtualHeap::counters() const noexcept {
  HeapLock lock(mutex_);
  return store_.counters;
}

Usage VirtualHeap::usage() const noexcept {
  HeapLock lock(mutex_);
  Usage usage;
  static_cast<Counters&>(usage) = store_.counters;
  usage.streams = store_.slots.count() - 2;
  usage.pending = returning_;
  store_.count_free(&usage);
  for (const Arena& arena : arenas_) {
    usage.segments += arena.chunks.size();
    usage.releasable += releasable(arena);
  }
  usage.segments -= shared_;
  usage.pinned = usage.cached() - usage.releasable;
  return usage;
}

void VirtualHeap::walk(BlockVisitor& visitor) const {
  HeapLock lock(mutex_);
  for (const Arena& arena : arenas_) BlockStore::walk_run(arena.first, arena.base, visitor);
}

bool VirtualHeap::check(std::string* why) const {
  HeapLock lock(mutex_);
  why->clear();
  BlockStore::Tally tally;
  Bytes chunks = 0;
  for (const Arena& arena : arenas_) {
    if (!store_.check_run(arena.first, arena.base, arena.span, &tally, why)) return false;
    if (!arena.unmapped.check() || !arena.chunks.check()) *why = "an arena's index is out of order";
    for (auto at = arena.chunks.first(); at; at = at.next()) {
      chunks += at->size;
      if (at->twin != nullptr && !check_ring(at.get())) {
        *why = "a shared chunk is not whole";
        return false;
      }
    }
  }
  if (chunks - shared_bytes_ + leaving_ != store_.counters.reserved) {
    *why = "chunks do not add up to reserved";
  }
  tally.mapped += leaving_;  // its block is hollow
  return store_.check_totals(tally, why);
}

}  // namespace fragshim
