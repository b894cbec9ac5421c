// NativeHeap under expandable_segments:True: segments whose addresses are reserved at once and
// whose memory is mapped page by page, as PyTorch does it.
#include <algorithm>

#include "core/alloc/accounts.hpp"
#include "core/alloc/native_heap.hpp"
#include "core/alloc/policy.hpp"

namespace fragshim {
namespace {

bool is_free(const Block* block) { return block != nullptr && block->state == Block::State::free; }

bool is_unmapped(const Block* block) {
  return block != nullptr && block->state == Block::State::unmapped;
}

/// Whether the free and unmapped blocks from `block` on give `size` bytes in a row.
bool has_room(const Block* block, Bytes size) {
  Bytes room = 0;
  for (; room < size && (is_free(block) || is_unmapped(block)); block = block->next) {
    room += block->size;
  }
  return room >= size;
}

}  // namespace

/// PyTorch's try_allocate_expandable_block: a free block of at least the request's size that is in
/// no index, or null.
Block* NativeHeap::grow_expandable(Request& request) noexcept {
  Block* block = find_expandable(request);
  if (block == nullptr) return nullptr;
  if (is_unmapped(block)) {
    Block* prev = block->prev;
    if (!map_block(block, std::min(block->size, request.size), request)) return nullptr;
    if (is_free(prev)) block = prev;
  }
  while (block->size < request.size) {
    // What follows is unmapped: mapping it joins it to this block.
    const Bytes missing = std::min(request.size - block->size, block->next->size);
    if (!map_block(block->next, missing, request)) return nullptr;
  }
  store_.erase_free(block);
  return block;
}

/// The lowest run of free and unmapped addresses with room for the request, or a new segment's.
Block* NativeHeap::find_expandable(const Request& request) noexcept {
  const OrderedIndex<Block>& unmapped = request.slot->unmapped[request.small];
  for (auto at = unmapped.first(); at; at = at.next()) {
    Block* start = is_free(at->prev) ? at->prev : at.get();
    if (has_room(start, request.size)) return start;
  }
  return new_expandable(request);
}

Block* NativeHeap::new_expandable(const Request& request) noexcept {
  if (!store_.prepare(1) || !segment_pool_.prepare(1)) return nullptr;
  const Bytes page = request.small ? policy::small_segment : config_.large_segment_size;
  const Bytes span = round_up(std::max(options_.expandable_span, request.size), page);
  Address base = 0;
  auto* pages = static_cast<Physical*>(map_host_memory(span / page * sizeof(Physical)));
  if (pages == nullptr) return nullptr;
  Segment* segment = segment_pool_.take();
  Block* block = store_.make(0, span, request.slot, request.small);
  if (device_.reserve(span, &base).ok() && segments_.insert(store_.nodes(), {0, base}, segment) &&
      request.slot->unmapped[request.small].insert(store_.nodes(), {0, base}, block)) {
    *segment = {base, span, block, page, pages};
    block->address = base;
    block->expandable = true;
    block->state = Block::State::unmapped;
    return block;
  }
  if (base != 0) device_.unreserve(base, span);
  segments_.erase(store_.nodes(), {0, base});
  munmap(pages, span / page * sizeof(Physical));
  segment_pool_.give(segment);
  store_.drop(block);
  return nullptr;
}

/// Maps memory under the first `size` bytes (rounded up to pages) of an unmapped block, and joins
/// it with its free neighbours.
bool NativeHeap::map_block(Block* block, Bytes size, Request& request) noexcept {
  if (!store_.prepare(1)) return false;
  Segment* segment = segment_of(block->address);
  const Bytes mapped = map_pages(*segment, block->address, size, &request.failure);
  if (mapped == 0) return false;
  OrderedIndex<Block>& unmapped = block->slot->unmapped[block->small];
  unmapped.erase(store_.nodes(), {0, block->address});
  if (mapped < block->size) {
    Block* rest = store_.cut(block, mapped);
    unmapped.insert(store_.nodes(), {0, rest->address}, rest);
  }
  accounts::reserved(store_.counters, mapped);
  store_.settle(block);
  return true;
}

/// Maps every page that [address, address + size) touches; all of them or none. Returns the bytes
/// mapped, from `address` on.
Bytes NativeHeap::map_pages(Segment& segment, Address address, Bytes size,
                            Status* failure) noexcept {
  const std::size_t begin = (address - segment.address) / segment.page;
  const std::size_t end = (address - segment.address + size + segment.page - 1) / segment.page;
  for (std::size_t i = begin; i < end; ++i) {
    Status status = device_.create(segment.page, &segment.pages[i]);
    if (status.ok()) {
      status = device_.map(segment.address + i * segment.page, segment.page, segment.pages[i]);
      if (status.ok()) continue;
      device_.destroy(segment.pages[i], segment.page);
    }
    *failure = status;
    segment.pages[i] = {};
    unmap_pages(segment, address, (i - begin) * segment.page);
    return 0;
  }
  return (end - begin) * segment.page;
}

/// Unmaps whole pages; `address` and `size` are multiples of the page.
void NativeHeap::unmap_pages(Segment& segment, Address address, Bytes size) noexcept {
  const std::size_t begin = (address - segment.address) / segment.page;
  for (std::size_t i = begin; i < begin + size / segment.page; ++i) {
    device_.unmap(segment.address + i * segment.page, segment.page);
    device_.destroy(segment.pages[i], segment.page);
    segment.pages[i] = {};
  }
}

/// Gives the whole pages inside every free block of an expandable segment back, once nothing runs
/// on them any more.
void NativeHeap::release_expandable() noexcept {
  if (!device_.synchronize().ok()) return;
  for (StreamSlot* slot = store_.slots.first(); slot != nullptr; slot = slot->next) {
    for (OrderedIndex<Block>& free : slot->free) {
      IndexKey done{0, 0};
      while (const auto at = free.after(done)) {
        done = at.key();
        if (at->expandable) unmap_block(at.get());
      }
    }
  }
}

/// Unmaps the whole pages inside a free block; what is left at its ends stays free.
void NativeHeap::unmap_block(Block* block) noexcept {
  Segment* segment = segment_of(block->address);
  const Address begin =
      segment->address + round_up(block->address - segment->address, segment->page);
  const Address end =
      segment->address + round_down(block->address + block->size - segment->address, segment->page);
  if (begin >= end) return;
  if (!store_.prepare(2)) return;
  store_.erase_free(block);
  if (block->address + block->size > end)
    store_.insert_free(store_.cut(block, end - block->address));
  if (block->address < begin) {
    Block* lower = block;
    block = store_.cut(lower, begin - lower->address);
    store_.insert_free(lower);
  }
  unmap_pages(*segment, begin, end - begin);
  accounts::returned(store_.counters, end - begin);
  drop_expandable(block);
}

/// Joins a block that has just lost its memory with unmapped neighbours; a segment that is all
/// unmapped goes back to the device.
void NativeHeap::drop_expandable(Block* block) noexcept {
  OrderedIndex<Block>& unmapped = block->slot->unmapped[block->small];
  block->state = Block::State::unmapped;
  if (is_unmapped(block->next)) {
    unmapped.erase(store_.nodes(), {0, block->next->address});
    store_.absorb(block, block->next);
  }
  if (is_unmapped(block->prev)) {
    Block* prev = block->prev;
    unmapped.erase(store_.nodes(), {0, prev->address});
    store_.absorb(prev, block);
    block = prev;
  }
  if (!block->is_whole()) {
    unmapped.insert(store_.nodes(), {0, block->address}, block);
    return;
  }
  Segment* segment = segments_.erase(store_.nodes(), {0, block->address});
  device_.unreserve(segment->address, segment->size);
  munmap(segment->pages, segment->size / segment->page * sizeof(Physical));
  segment_pool_.give(segment);
  store_.drop(block);
}

}  // namespace fragshim
