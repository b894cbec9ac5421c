// What NativeHeap tells about itself: usage, a walk over every block, and a check of everything.
#include "core/alloc/native_heap.hpp"

namespace fragshim {
namespace {

/// The bytes of a segment without a live block, which a trim would return whole. Its blocks need
/// not be joined yet: some may wait for their fence.
Bytes releasable_whole(const Segment& segment) {
  for (const Block* block = segment.first; block != nullptr; block = block->next) {
    if (block->state == Block::State::live || block->held) return 0;
  }
  return segment.size;
}

/// The bytes of a free block of an expandable segment that a trim would return.
Bytes releasable_pages(const Segment& segment, const Block& block) {
  const Bytes offset = block.address - segment.address;
  const Bytes begin = round_up(offset, segment.page);
  const Bytes end = round_down(offset + block.size, segment.page);
  return begin < end ? end - begin : 0;
}

}  // namespace

Usage NativeHeap::usage() const noexcept {
  HeapLock lock(mutex_);
  Usage usage;
  static_cast<Counters&>(usage) = store_.counters;
  usage.segments = segments_.size();
  usage.streams = store_.slots.count();
  usage.pending = pending_.bytes();
  store_.count_free(&usage);
  for (auto at = segments_.first(); at; at = at.next()) {
    if (!at->expandable()) usage.releasable += releasable_whole(*at.get());
    for (const Block* block = at->first; block != nullptr; block = block->next) {
      const bool idle = block->is_free() || block->state == Block::State::pending;
      if (!idle) continue;
      if (at->expandable()) usage.releasable += releasable_pages(*at.get(), *block);
      if (!block->expandable && !block->is_whole()) usage.inactive_split += block->size;
    }
  }
  usage.pinned = usage.cached() - usage.releasable;
  return usage;
}

void NativeHeap::walk(BlockVisitor& visitor) const {
  HeapLock lock(mutex_);
  for (auto at = segments_.first(); at; at = at.next()) {
    BlockStore::walk_run(at->first, at->address, visitor);
  }
}

bool NativeHeap::check(std::string* why) const {
  HeapLock lock(mutex_);
  why->clear();
  BlockStore::Tally tally;
  for (auto at = segments_.first(); at; at = at.next()) {
    if (!store_.check_run(at->first, at->address, at->size, &tally, why)) return false;
  }
  if (!segments_.check()) *why = "the index of segments is out of order";
  return store_.check_totals(tally, why);
}

}  // namespace fragshim
