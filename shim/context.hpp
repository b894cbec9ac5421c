// The contexts of this process, and the memory that is served in each.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "core/alloc/heap.hpp"
#include "core/device/limited.hpp"
#include "core/device/metered.hpp"
#include "shim/context_stream.hpp"
#include "shim/cuda_device.hpp"
#include "shim/door_ledger.hpp"
#include "shim/log.hpp"

namespace fragshim {

using log::HeapKind;

/// What all contexts of one GPU share. One record a GPU, never destroyed.
struct Gpu {
  static constexpr int max_gpus = 64;

  Budget budget;                                    // of all heaps on this GPU
  PeerAccess peers;                                 // of its default pool
  std::atomic<CUmemoryPool> default_pool{nullptr};  // null where the driver has no pools
  std::atomic<bool> other_pool{false};  // the program has made another pool the current one
  std::atomic<bool> announced{false};   // the log knows of it
  std::atomic<Bytes> total{0};          // memory of the card

  CUdevice ordinal() const noexcept;
};

/// The record of a GPU, with limits and pools looked up at its first use; null for an ordinal that
/// is out of range, and while the settings cannot be read.
Gpu* gpu_at(CUdevice device) noexcept;
/// The GPU whose default pool this is; null where it is some other pool.
Gpu* gpu_of_default_pool(CUmemoryPool pool) noexcept;

/// One way for memory to come and go in a context: the heap that serves it, or the ledger of what
/// passes through.
struct Door {
  Door(CudaDevice& cuda, Budget& budget) noexcept : metered(cuda), limited(metered, budget) {}

  MeteredDevice metered;
  LimitedDevice limited;
  std::unique_ptr<Heap> heap;  // null: calls pass through
  Ledger ledger;
  std::atomic<std::uint64_t> device_free{0};  // of the meter's, those looked at for retries
  std::atomic<std::uint64_t> retries{0};      // of the heap's, those the log knows of

  Heap& shown() noexcept { return heap ? *heap : ledger; }
};

/// All that is served in one context. Never deleted, since threads may still be inside; once the
/// context is gone its record is off the list, and its heaps' device gives nothing any more.
struct ContextHeap {
  ContextHeap(CUcontext of, unsigned long long instance, bool is_primary, Gpu& on) noexcept
      : context(of),
        id(instance),
        primary(is_primary),
        gpu(on),
        cuda(of, on.ordinal(), on.peers),
        synchronous(cuda, on.budget),
        stream_ordered(cuda, on.budget) {}

  const CUcontext context;
  const unsigned long long id;  // handles are reused, ids are not; 0 before CUDA 12.0
  const bool primary;           // of its GPU
  Gpu& gpu;
  CudaDevice cuda;
  Door synchronous;
  Door stream_ordered;
  ContextHeap* next_retired = nullptr;

  Door& door(HeapKind kind) noexcept {
    return kind == HeapKind::synchronous ? synchronous : stream_ordered;
  }
};

/// The calling thread's current context; null where it has none, or none can be served. One call of
/// the driver where it is the same as at the last call.
ContextHeap* current_heap() noexcept;
/// The context that was current when the calling thread last needed to know; null where none was.
/// Where a block is likely to lie: it asks the driver nothing.
ContextHeap* last_heap() noexcept;
/// The context in which `stream` lies: the current one for default streams, its own for the others.
ContextHeap* heap_of(const StreamRef& stream) noexcept;
/// The context of a stream as the driver knows it; null where it does not.
CUcontext context_of(const StreamRef& stream) noexcept;

/// The contexts that are listed now. Those that are gone by the time one looks are null.
using ContextList = std::array<std::atomic<ContextHeap*>, 256>;
ContextList& contexts() noexcept;

template <class Function>
void each_context(Function function) {
  for (const std::atomic<ContextHeap*>& slot : contexts()) {
    if (ContextHeap* const heap = slot.load(std::memory_order_acquire)) function(*heap);
  }
}

/// The same for the contexts of one GPU.
template <class Function>
void each_context_on(const Gpu& gpu, Function function) {
  each_context([&](ContextHeap& heap) {
    if (&heap.gpu == &gpu) function(heap);
  });
}

/// Whoever remembers a context or a stream must look again: one is being destroyed.
void forget_remembered() noexcept;
/// A context is gone with its memory: its record leaves the list, its virtual memory goes back.
/// Once; later calls do nothing.
void retire_context(ContextHeap& heap) noexcept;
/// The record of a context, where it has one.
ContextHeap* listed_heap(CUcontext context) noexcept;

/// The first allocation on a GPU: the log opens, and learns of the card.
void announce(ContextHeap& heap) noexcept;
/// A door as the log sees it.
log::HeapView view_of(ContextHeap& heap, HeapKind kind) noexcept;

/// Managed memory passes through, and is on this list; pinned host memory likewise.
Ledger& managed_memory() noexcept;
Ledger& host_memory() noexcept;

/// Fills a new record with heaps, or leaves doors without where the settings say so, or the GPU
/// cannot. False where the host has no memory.
bool furnish(ContextHeap& heap) noexcept;

}  // namespace fragshim
