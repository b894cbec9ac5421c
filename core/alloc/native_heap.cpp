#include "core/alloc/native_heap.hpp"

#include "core/alloc/accounts.hpp"
#include "core/alloc/policy.hpp"

namespace fragshim {
namespace {

constexpr Bytes largest_request = Bytes{1} << 56;  // rounding never wraps below this
constexpr std::uint64_t batch_size = 64;           // freed blocks that share a fence

}  // namespace

NativeHeap::NativeHeap(Device& device, const AllocationConfig& config, const NativeOptions& options)
    : device_(device), config_(config), options_(options), mutex_(options.callers) {}

NativeHeap::~NativeHeap() {
  for (auto at = segments_.first(); at; at = at.next()) {
    if (at->expandable()) munmap(at->pages, at->size / at->page * sizeof(Physical));
  }
}

Grant NativeHeap::allocate(Bytes size, StreamId stream) noexcept {
  HeapLock lock(mutex_);
  Request request{};
  request.failure.outcome = Outcome::out_of_memory;
  request.requested = size;
  if (size <= largest_request) {
    request.size = policy::round_size(config_, size);
    request.small = policy::is_small(request.size);
    if (!request.small) request.size = round_up(request.size, options_.large_unit);
    request.slot = store_.slots.find_or_create(fenced() ? all_streams : stream);
  }
  if (request.slot != nullptr && store_.prepare(1)) {
    Block* block = take_free(request);
    if (block == nullptr) block = fit(obtain(request, lock), request);
    if (block != nullptr) {
      store_.make_live(block, request.requested);
      return {block->address, {}};
    }
  }
  accounts::refused(store_.counters, request.failure);
  return {0, request.failure};
}

Status NativeHeap::free(Address address, StreamId) noexcept {
  HeapLock lock(mutex_);
  Block* block = store_.end_life(address);
  if (block == nullptr) return {Outcome::not_owned};
  if (!fenced()) {
    store_.settle(block);
    return {};
  }
  pending_.push(block);
  if (pending_.open_count() >= batch_size) {
    const Counted here(at_work_);
    pending_.close(device_, all_streams, batches_, lock);
  }
  return {};
}

/// PyTorch's get_free_block: exactly one candidate is looked at. The block comes cut to size.
Block* NativeHeap::take_free(const Request& request) noexcept {
  if (collects_garbage()) ++store_.searches[request.small];
  OrderedIndex<Block>& free = request.slot->free[request.small];
  auto at = free.lower_bound({request.size, 0});
  if (!at) return nullptr;
  if (config_.expandable_segments && at->expandable) {
    // What an expandable block can grow to counts as its size.
    const auto reach = [](const Block* block) {
      const Block* next = block->next;
      return block->size +
             (next != nullptr && next->state == Block::State::unmapped ? next->size : 0);
    };
    for (auto next = at.next(); next && reach(next.get()) < reach(at.get()); next = next.next()) {
      at = next;
    }
  }
  const Bytes found = at.key().size();  // the block itself may be far away
  if (!policy::may_serve(config_, found, request.size)) return nullptr;
  const bool split =
      policy::should_split(config_, request.small, request.size, found - request.size);
  return store_.take(request.slot, request.small, at, request.size, split);
}

/// Splits off what the request does not need from a block in no index. Null: there was no block,
/// or no host memory for the record of the rest.
Block* NativeHeap::fit(Block* block, const Request& request) noexcept {
  if (block == nullptr) return nullptr;
  if (!store_.prepare(1)) {
    store_.settle(block);
    return nullptr;
  }
  if (policy::should_split(config_, block->small, request.size, block->size - request.size)) {
    store_.insert_free(store_.cut(block, request.size));
    ++store_.counters.splits;
  }
  return block;
}

Bytes NativeHeap::trim(Bytes keep) noexcept {
  HeapLock lock(mutex_);
  const Counted here(at_work_);
  ++store_.counters.trims;
  return release_cached(lock, keep);
}

bool NativeHeap::pin_segment(Address address) noexcept {
  HeapLock lock(mutex_);
  const auto at = segments_.at_or_before({0, address});
  if (!at || at->address != address) return false;
  for (Block* block = at->first; block != nullptr; block = block->next) {
    if (block->is_free()) store_.erase_free(block);
    block->held = true;
  }
  return true;
}

void NativeHeap::reset_peaks(bool allocated, bool reserved) noexcept {
  HeapLock lock(mutex_);
  accounts::reset_peaks(store_.counters, allocated, reserved);
}

Segment* NativeHeap::segment_of(Address address) const noexcept {
  const auto at = segments_.at_or_before({0, address});
  return at && address - at->address < at->size ? at.get() : nullptr;
}

bool NativeHeap::contains(Address address) const noexcept {
  HeapLock lock(mutex_);
  return segment_of(address) != nullptr;
}

Counters NativeHeap::counters() const noexcept {
  HeapLock lock(mutex_);
  return store_.counters;
}

}  // namespace fragshim
