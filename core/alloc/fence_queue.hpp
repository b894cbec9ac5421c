// Freed blocks that wait for the device: gathered into batches, one fence a batch.
#pragma once

#include "core/alloc/block.hpp"
#include "core/alloc/heap_mutex.hpp"
#include "core/device/device.hpp"

namespace fragshim {

/// Blocks freed one after the other, chained through Block::link, under one fence.
struct FenceBatch {
  Block* first = nullptr;
  Block* last = nullptr;
  Bytes bytes = 0;
  Bytes largest = 0;
  std::uint64_t count = 0;
  Fence fence;
  FenceBatch* next = nullptr;
};

using FenceBatches = Pool<FenceBatch>;

/// Counts a thread in for as long as it lives; made and dropped with the heap's lock held.
template <class Count>
class Counted {
 public:
  explicit Counted(Count& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Count& count_;
};

/// A queue of batches. Every method is called with the heap's lock held; those that take the lock
/// drop it around the driver call they make. While they do, the batch they work on is in nobody's
/// reach, but still counts in bytes().
class FenceQueue {
 public:
  /// Adds a freed block to the open batch.
  void push(Block* block) noexcept;

  /// Closes the open batch behind a fence on `stream`. False: no fence could be recorded (then the
  /// batch stays open), or there was nothing to close.
  bool close(Device& device, StreamId stream, FenceBatches& pool, HeapLock& lock) noexcept;

  /// Takes the oldest closed batch if its fence has passed: its blocks, chained; else null.
  Block* collect(Device& device, FenceBatches& pool, HeapLock& lock) noexcept;

  /// Waits for the oldest closed batch, however long the device takes, and takes its blocks.
  Block* wait(Device& device, FenceBatches& pool, HeapLock& lock) noexcept;

  /// Makes `stream` wait on the device for the oldest closed batch, and takes its blocks: they are
  /// good for that stream.
  Block* order(Device& device, StreamId stream, FenceBatches& pool, HeapLock& lock) noexcept;

  /// Waits for every closed batch and, where the last `close` could record no fence, for the whole
  /// context. Hands the blocks over chain by chain: settle(chain), with the lock held.
  template <class Settle>
  void drain(Device& device, bool closed, FenceBatches& pool, HeapLock& lock,
             Settle settle) noexcept {
    while (Block* chain = wait(device, pool, lock)) settle(chain);
    if (closed) return;
    if (Block* chain = wait_for_open(device, lock)) settle(chain);
  }

  /// Takes the open batch's blocks, chained, where the device is known to have done with them.
  Block* take_open() noexcept;

  Bytes bytes() const noexcept { return bytes_; }
  std::uint64_t open_count() const noexcept { return open_.count; }
  bool empty() const noexcept { return bytes_ == 0; }
  /// True where some waiting block has at least `size` bytes.
  bool may_hold(Bytes size) const noexcept;
  /// Blocks in reach of this queue now, for walks.
  template <class Visit>
  void for_each(Visit visit) const {
    visit_chain(open_.first, visit);
    for (const FenceBatch* batch = oldest_; batch != nullptr; batch = batch->next) {
      visit_chain(batch->first, visit);
    }
  }

 private:
  template <class Visit>
  static void visit_chain(Block* block, Visit visit) {
    for (; block != nullptr; block = block->link) visit(block);
  }
  /// Waits for the whole context and takes the open batch's blocks; null where it cannot be
  /// awaited.
  Block* wait_for_open(Device& device, HeapLock& lock) noexcept;
  void reopen(const FenceBatch& batch) noexcept;
  template <class Ask>
  Block* take_oldest(Device& device, FenceBatches& pool, HeapLock& lock, Ask ask) noexcept;
  FenceBatch* pop() noexcept;
  void put_back(FenceBatch* batch) noexcept;
  Block* finish(Device& device, FenceBatch* batch, FenceBatches& pool) noexcept;

  FenceBatch open_;
  FenceBatch* oldest_ = nullptr;
  FenceBatch* newest_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace fragshim
