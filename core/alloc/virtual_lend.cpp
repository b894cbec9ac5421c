// VirtualHeap lending: a chunk that something alive pins at one end serves with its free end where
// memory is missing. It is mapped there a second time, and each place has its part of it. What is
// lent of a chunk's upper end can only come first at the new place, of its lower end last.
#include <algorithm>

#include "core/alloc/virtual_heap.hpp"

namespace fragshim {
namespace {

// Memory is lent where more than this would be held beyond the peak, one part in so many of it.
constexpr Bytes loan_share = 200;
// A loan costs as much as a chunk, and what is lent on the way up, to what stays, is missing later:
// requests get one that are of so many chunks, and so large a part of the peak, or would fail.
constexpr Bytes loan_chunks = 4;
constexpr Bytes loan_request_share = 64;
constexpr int blocks_looked_at = 64;  // free blocks searched for ends of chunks

}  // namespace

/// Lends what `wanted` has beyond `room` to create, as far as there is something that can be lent.
void VirtualHeap::borrow(const Request& request, const Site& site, Bytes room, Bytes wanted,
                         Supply* supply) noexcept {
  const Bytes have = round_down(room, device_.granularity()) + supply->moved_bytes;
  if (have >= site.missing || !lending_pays(request, still_missing(wanted, *supply))) return;
  const Bytes missing = site.missing - have;
  // In front of the new memory there is room only where no free block is.
  Loan tail = site.below == nullptr ? find_loan(request, missing, false) : Loan{};
  Loan head = find_loan(request, missing, true);
  if (tail.size >= missing && (head.size < missing || tail.size < head.size)) {
    head = {};
  } else if (head.size >= missing) {
    tail = {};
  } else if (tail.chunk != nullptr) {
    head = find_loan(request, missing - tail.size, true);
  }
  tail.size = std::min(tail.size, missing);
  head.size = std::min(head.size, missing - tail.size);
  Supply all = *supply;
  all.tail = tail;
  all.head = head;
  all.created_bytes = still_missing(site.missing, all);
  if (all.addresses() > site.hole->size) return;
  if (tail.chunk != nullptr && claim_loan(&tail, false)) supply->tail = tail;
  if (head.chunk != nullptr && claim_loan(&head, true)) supply->head = head;
}

/// Whether to lend to the request rather than to create `created` bytes.
bool VirtualHeap::lending_pays(const Request& request, Bytes created) const noexcept {
  // Without them the addresses of loans that are over could not be told from those still in use.
  if (!device_.has_context_fences()) return false;
  if (request.tight) return true;
  const Bytes least =
      std::max(loan_chunks * chunk_size(false), store_.counters.reserved_peak / loan_request_share);
  if (request.size < least) return false;
  if (request.scarce) return true;
  const Counters& counters = store_.counters;
  const Bytes peak = std::max(counters.allocated_peak, counters.allocated + request.size);
  return counters.reserved + created > peak + peak / loan_share;
}

/// The smallest free end of a chunk (the lower end: `head`) that has `missing` bytes, or the
/// largest there is.
Loan VirtualHeap::find_loan(const Request& request, Bytes missing, bool head) const noexcept {
  const bool oversize = request.size >= config_.max_split_size;
  const Terms terms{missing, missing, true, oversize, request.slot, false};
  Loan best;
  for (const bool small : {false, true}) {
    IndexKey than{oversize ? unlimited : config_.max_split_size - 1, unlimited};
    for (int i = 0; i < blocks_looked_at; ++i) {
      Block* block = next_smaller(terms, small, than);
      if (block == nullptr) break;
      than = {block->size, block->address};
      const Address end = block->address + block->size;
      const auto at = arenas_[small].chunks.at_or_before({0, head ? end - 1 : block->address});
      const Address chunk_end = at ? at->address + at->size : 0;
      if (chunk_end <= block->address || at->stays) continue;
      const bool lends = head ? at->address >= block->address && chunk_end > end
                              : at->address < block->address && chunk_end <= end;
      if (!lends) continue;
      const Bytes size = head ? end - at->address : chunk_end - block->address;
      const bool serves = size >= missing;
      if (best.size < missing ? size > best.size : serves && size < best.size) {
        best = {at.get(), nullptr, block, size, nullptr};
      }
    }
  }
  return best;
}

/// Whether the lender keeps something at its place once it has lent this and what is on its way: a
/// place at which nothing is left would be found by nobody.
static bool keeps_something(const Loan& loan) noexcept {
  const Address start = loan.chunk->address;
  const Address end = start + loan.chunk->size;
  const Block* block = loan.block;
  while (block->address > start) block = block->prev;
  Bytes kept = 0;
  for (; block != nullptr && block->address < end; block = block->next) {
    const bool serves = block->is_free() || block->state == Block::State::live;
    if (!serves || block->address + block->size <= start) continue;
    kept += std::min(block->address + block->size, end) - std::max(block->address, start);
  }
  return kept > loan.size;
}

/// Takes what is lent out of everybody's reach. False: it cannot be lent, or there is no host
/// memory for the records.
bool VirtualHeap::claim_loan(Loan* loan, bool head) noexcept {
  if (!keeps_something(*loan) || !chunk_pool_.prepare(1) || !store_.prepare(2) ||
      !store_.nodes().prepare(4 * IndexTree::max_height)) {
    return false;
  }
  const Chunk* chunk = loan->chunk;
  const Address start = head ? chunk->address : chunk->address + chunk->size - loan->size;
  carve(loan->block, start, loan->size, &loan->block);
  loan->twin = chunk_pool_.take();
  loan->twin->size = chunk->size;
  loan->twin->memory = chunk->memory;
  return true;
}

/// Sets the addresses in a claimed hole aside at which nothing lent is mapped.
void VirtualHeap::place_loans(Site* site, Supply* supply) noexcept {
  if (supply->tail.chunk != nullptr) {
    supply->tail.shadow = site->hole;
    site->hole = store_.cut(site->hole, supply->tail.unlent());
  }
  if (supply->head.chunk != nullptr) {
    supply->head.shadow = store_.cut(site->hole, supply->bytes());
  }
}

/// Maps what is lent around a supply that starts at `address`; all or none. Called without the
/// lock.
Status VirtualHeap::map_loans(Supply* supply, Address address) noexcept {
  const auto& [tail, head] = std::pair(supply->tail, supply->head);
  if (tail.chunk != nullptr) {
    const Status status =
        device_.map(address - tail.unlent(), tail.chunk->size, tail.chunk->memory);
    if (!status.ok()) {
      supply->refused = tail.chunk;
      return status;
    }
  }
  if (head.chunk == nullptr) return {};
  const Address end = address + supply->bytes();
  const Status status = device_.map(end - head.size, head.chunk->size, head.chunk->memory);
  if (status.ok()) return {};
  supply->refused = head.chunk;
  if (tail.chunk != nullptr) device_.unmap(address - tail.unlent(), tail.chunk->size);
  return status;
}

/// Enters the loans around a supply that starts at `address`.
void VirtualHeap::settle_loans(const Supply& supply, Address address, bool small) noexcept {
  settle_loan(supply.tail, address - supply.tail.unlent(), small);
  settle_loan(supply.head, address + supply.bytes() - supply.head.size, small);
}

/// Enters a loan: the chunk is mapped at `address`, too.
void VirtualHeap::settle_loan(const Loan& loan, Address address, bool small) noexcept {
  if (loan.chunk == nullptr) return;
  Chunk* chunk = loan.chunk;
  Chunk* twin = loan.twin;
  chunk->shadow = close_up(loan.block, loan.size);
  twin->shadow = loan.shadow;
  make_hollow(chunk->shadow);
  make_hollow(twin->shadow);
  twin->address = address;
  twin->twin = chunk->twin != nullptr ? chunk->twin : chunk;
  chunk->twin = twin;
  arenas_[small].chunks.insert(store_.nodes(), {0, address}, twin);
  ++shared_;
  shared_bytes_ += twin->size;
}

/// Undoes a claimed loan.
void VirtualHeap::abandon_loan(const Loan& loan) noexcept {
  if (loan.chunk == nullptr) return;
  chunk_pool_.give(loan.twin);
  keep(loan.block, loan.size);
  if (loan.shadow != nullptr) make_hole(loan.shadow);
}

}  // namespace fragshim
