#include "core/alloc/fence_queue.hpp"

#include <algorithm>
#include <utility>

namespace fragshim {

void FenceQueue::push(Block* block) noexcept {
  block->link = nullptr;
  (open_.last != nullptr ? open_.last->link : open_.first) = block;
  open_.last = block;
  open_.bytes += block->size;
  open_.largest = std::max(open_.largest, block->size);
  ++open_.count;
  bytes_ += block->size;
}

bool FenceQueue::close(Device& device, StreamId stream, FenceBatches& pool,
                       HeapLock& lock) noexcept {
  if (open_.count == 0) return false;
  FenceBatch* batch = pool.take();
  if (batch == nullptr) return false;  // it stays open; a later call finds host memory again
  *batch = open_;
  open_ = FenceBatch{};
  Status recorded;
  {
    Unlocked unlocked(lock);
    recorded = device.record(stream, &batch->fence);
  }
  if (recorded.ok()) {
    (newest_ != nullptr ? newest_->next : oldest_) = batch;
    newest_ = batch;
    return true;
  }
  reopen(*batch);
  pool.give(batch);
  return false;
}

/// Puts blocks back to the front of the open batch, which may have grown in between.
void FenceQueue::reopen(const FenceBatch& batch) noexcept {
  batch.last->link = open_.first;
  if (open_.last == nullptr) open_.last = batch.last;
  open_.first = batch.first;
  open_.bytes += batch.bytes;
  open_.largest = std::max(open_.largest, batch.largest);
  open_.count += batch.count;
}

FenceBatch* FenceQueue::pop() noexcept {
  FenceBatch* batch = oldest_;
  oldest_ = batch->next;
  if (oldest_ == nullptr) newest_ = nullptr;
  batch->next = nullptr;
  return batch;
}

void FenceQueue::put_back(FenceBatch* batch) noexcept {
  batch->next = oldest_;
  oldest_ = batch;
  if (newest_ == nullptr) newest_ = batch;
}

Block* FenceQueue::finish(Device& device, FenceBatch* batch, FenceBatches& pool) noexcept {
  Block* blocks = batch->first;
  bytes_ -= batch->bytes;
  device.retire(batch->fence);
  pool.give(batch);
  return blocks;
}

/// Takes the oldest closed batch if ask(its fence), a driver call, says ok.
template <class Ask>
Block* FenceQueue::take_oldest(Device& device, FenceBatches& pool, HeapLock& lock,
                               Ask ask) noexcept {
  if (oldest_ == nullptr) return nullptr;
  FenceBatch* batch = pop();
  Status answer;
  {
    Unlocked unlocked(lock);
    answer = ask(batch->fence);
  }
  if (answer.ok()) return finish(device, batch, pool);
  put_back(batch);
  return nullptr;
}

Block* FenceQueue::collect(Device& device, FenceBatches& pool, HeapLock& lock) noexcept {
  return take_oldest(device, pool, lock, [&](Fence fence) { return device.query(fence); });
}

Block* FenceQueue::wait(Device& device, FenceBatches& pool, HeapLock& lock) noexcept {
  return take_oldest(device, pool, lock, [&](Fence fence) { return device.wait(fence); });
}

Block* FenceQueue::order(Device& device, StreamId stream, FenceBatches& pool,
                         HeapLock& lock) noexcept {
  return take_oldest(device, pool, lock,
                     [&](Fence fence) { return device.stream_wait(stream, fence); });
}

Block* FenceQueue::wait_for_open(Device& device, HeapLock& lock) noexcept {
  if (open_.count == 0) return nullptr;
  const FenceBatch batch = open_;  // blocks freed meanwhile are not covered
  open_ = FenceBatch{};
  Status idle;
  {
    Unlocked unlocked(lock);
    idle = device.synchronize();
  }
  if (!idle.ok()) {
    reopen(batch);
    return nullptr;
  }
  bytes_ -= batch.bytes;
  return batch.first;
}

Block* FenceQueue::take_open() noexcept {
  bytes_ -= open_.bytes;
  return std::exchange(open_, {}).first;
}

bool FenceQueue::may_hold(Bytes size) const noexcept {
  if (open_.largest >= size) return true;
  for (const FenceBatch* batch = oldest_; batch != nullptr; batch = batch->next) {
    if (batch->largest >= size) return true;
  }
  return false;
}

}  // namespace fragshim
