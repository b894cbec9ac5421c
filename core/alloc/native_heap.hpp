// PyTorch's caching allocator, exactly: plain segments cut into blocks, best fit within a stream.
// The same rules serve the synchronous door, where memory is freed by programs whose streams are
// not known: there a freed block is reused only behind a fence over all streams.
#pragma once

#include "config/allocation_config.hpp"
#include "core/alloc/block_store.hpp"
#include "core/alloc/fence_queue.hpp"
#include "core/alloc/heap.hpp"
#include "core/alloc/heap_mutex.hpp"
#include "core/alloc/ordered_index.hpp"
#include "core/alloc/segment.hpp"

namespace fragshim {

struct NativeOptions {
  enum class Reuse : std::uint8_t {
    in_order,  // a block freed on its stream is at once good for that stream (PyTorch)
    fenced,    // streams are unknown: a freed block is reused once all earlier work is done
  };
  Reuse reuse = Reuse::in_order;
  /// What the process may reserve, in bytes; `unlimited` switches garbage collection off as well.
  Bytes allowed = unlimited;
  /// Fenced reuse: so many freed bytes may wait before a fence is asked for them. The heap grows by
  /// as much at most, and several frees share a fence, which costs more than all the rest.
  Bytes fence_spare = 0;
  /// Blocks of more than 1 MiB begin at multiples of this, and are as long.
  Bytes large_unit = 512;
  /// Addresses of one expandable segment, in bytes; PyTorch takes 1 1/8 of the card.
  Bytes expandable_span = 162 * GiB;
  Callers callers = Callers::many;
};

/// Expandable segments keep the lock while they map memory: they serve the replay, never a program.
class NativeHeap final : public Heap {
 public:
  NativeHeap(Device& device, const AllocationConfig& config, const NativeOptions& options = {});
  ~NativeHeap() override;

  Grant allocate(Bytes size, StreamId stream) noexcept override;
  Status free(Address address, StreamId stream) noexcept override;
  Bytes trim(Bytes keep) noexcept override;
  bool contains(Address address) const noexcept override;
  bool pin_segment(Address address) noexcept override;
  void reset_peaks(bool allocated, bool reserved) noexcept override;
  Counters counters() const noexcept override;
  Usage usage() const noexcept override;
  void walk(BlockVisitor& visitor) const override;
  bool check(std::string* why) const override;

 private:
  /// One request on its way through the steps of `allocate`.
  struct Request {
    Bytes requested;     // what the program asked for
    Bytes size;          // after rounding
    Bytes segment_size;  // what a new segment for it would take; once nothing cached fits
    bool small;
    StreamSlot* slot;
    Status failure;  // the last refusal of the device
  };

  // The hot path (native_heap.cpp).
  Block* take_free(const Request& request) noexcept;
  Block* fit(Block* block, const Request& request) noexcept;

  // When nothing fits (native_pressure.cpp).
  Block* obtain(Request& request, HeapLock& lock) noexcept;
  Block* reuse_pending(Request& request, HeapLock& lock) noexcept;
  bool fences_work(HeapLock& lock) noexcept;
  bool collect_pending(HeapLock& lock) noexcept;
  void wait_for_pending(HeapLock& lock) noexcept;
  Block* grow(Request& request, HeapLock& lock) noexcept;
  Block* add_segment(Address address, Bytes size, const Request& request) noexcept;
  Bytes release_cached(HeapLock& lock, Bytes keep) noexcept;
  bool release_oversize(const Request& request, HeapLock& lock) noexcept;
  void collect_garbage(HeapLock& lock) noexcept;
  void detach(Block* block, Block** chain) noexcept;
  Bytes give_back(Block* chain, HeapLock& lock) noexcept;

  // Expandable segments (native_expandable.cpp).
  Block* grow_expandable(Request& request) noexcept;
  Block* find_expandable(const Request& request) noexcept;
  Block* new_expandable(const Request& request) noexcept;
  bool map_block(Block* block, Bytes size, Request& request) noexcept;
  Bytes map_pages(Segment& segment, Address address, Bytes size, Status* failure) noexcept;
  void unmap_pages(Segment& segment, Address address, Bytes size) noexcept;
  void unmap_block(Block* block) noexcept;
  void release_expandable() noexcept;
  void drop_expandable(Block* block) noexcept;
  Segment* segment_of(Address address) const noexcept;

  bool limited() const noexcept { return options_.allowed != unlimited; }
  bool fenced() const noexcept { return options_.reuse == NativeOptions::Reuse::fenced; }
  bool collects_garbage() const noexcept {
    return limited() && config_.garbage_collection_threshold > 0;
  }

  Device& device_;
  const AllocationConfig config_;
  const NativeOptions options_;
  mutable HeapMutex mutex_;
  BlockStore store_;
  FenceBatches batches_;
  Pool<Segment> segment_pool_;
  OrderedIndex<Segment> segments_;  // by (0, address)
  FenceQueue pending_;              // fenced reuse: freed, waiting
  int at_work_ = 0;                 // threads that may have memory in hand without the lock
};

}  // namespace fragshim
