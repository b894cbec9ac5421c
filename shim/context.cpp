#include "shim/context.hpp"

#include <mutex>
#include <new>

#include "shim/capture.hpp"
#include "shim/driver.hpp"

namespace fragshim {
namespace {

constinit ContextList listed{};
constinit std::mutex list_mutex;  // for those who change the list; held across no call
constinit ContextHeap* retired = nullptr;

/// Grows whenever something that threads remember may have become wrong.
constinit std::atomic<std::uint64_t> generation{1};

/// What a thread remembers, to look nothing up on the hot path.
struct Remembered {
  std::uint64_t generation;
  CUcontext context;
  ContextHeap* heap;
  struct Stream {
    CUstream handle;
    ContextHeap* heap;
  };
  std::array<Stream, 4> streams;
};
constinit thread_local Remembered remembered{};

Remembered& up_to_date() noexcept {
  const std::uint64_t now = generation.load(std::memory_order_acquire);
  if (remembered.generation != now) remembered = {now, nullptr, nullptr, {}};
  return remembered;
}

/// What tells a context from a later one with the same handle; 0: this driver has no such thing, or
/// would not tell this time.
unsigned long long id_of(CUcontext context) noexcept {
  const Driver& real = *driver();
  unsigned long long id = 0;
  if (real.cuCtxGetId && real.cuCtxGetId(context, &id) != CUDA_SUCCESS) id = 0;
  return id;
}

/// Whether `context`, which is in use, is the primary one of its GPU.
bool is_primary(CUcontext context, CUdevice device) noexcept {
  const Driver& real = *driver();
  unsigned int flags = 0;
  int active = 0;
  if (!real.cuDevicePrimaryCtxGetState || !real.cuDevicePrimaryCtxRelease_v2 ||
      real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0) {
    return false;
  }
  CUcontext primary = nullptr;
  if (real.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) return false;
  real.cuDevicePrimaryCtxRelease_v2(device);
  return primary == context;
}

/// Makes a record for a context; null where it cannot be served.
ContextHeap* make(CUcontext context, unsigned long long id) noexcept {
  const Driver& real = *driver();
  CUcontext before = nullptr;
  if (real.cuCtxGetCurrent(&before) != CUDA_SUCCESS) return nullptr;
  const bool pushed = before != context;
  if (pushed && real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return nullptr;
  ContextHeap* heap = nullptr;
  CUdevice device = 0;
  Gpu* const gpu = real.cuCtxGetDevice(&device) == CUDA_SUCCESS ? gpu_at(device) : nullptr;
  if (gpu != nullptr) {
    heap = new (std::nothrow) ContextHeap(context, id, is_primary(context, device), *gpu);
  }
  if (heap != nullptr && !furnish(*heap)) {
    delete heap;
    heap = nullptr;
  }
  if (pushed) real.cuCtxPopCurrent_v2(&before);
  return heap;
}

/// Lists a new record, unless another thread was faster: then that one is it.
ContextHeap* list(ContextHeap* fresh) noexcept {
  const std::lock_guard lock(list_mutex);
  ContextHeap* winner = listed_heap(fresh->context);
  for (auto slot = listed.begin(); winner == nullptr && slot != listed.end(); ++slot) {
    if (slot->load(std::memory_order_relaxed) != nullptr) continue;
    slot->store(fresh, std::memory_order_release);
    return fresh;
  }
  return winner;  // null: more contexts than there is room for
}

bool unlist(ContextHeap& heap) noexcept {
  const std::lock_guard lock(list_mutex);
  for (std::atomic<ContextHeap*>& slot : listed) {
    if (slot.load(std::memory_order_relaxed) != &heap) continue;
    slot.store(nullptr, std::memory_order_release);
    heap.next_retired = retired;
    retired = &heap;
    return true;
  }
  return false;
}

ContextHeap* find_or_make(CUcontext context) noexcept {
  const unsigned long long id = id_of(context);
  ContextHeap* const known = listed_heap(context);
  // Not to know is no reason to give up a context, and all its memory with it.
  if (known != nullptr && (id == 0 || known->id == 0 || known->id == id)) return known;
  if (known != nullptr) retire_context(*known);  // an earlier context with the same handle
  ContextHeap* const fresh = make(context, id);
  if (fresh == nullptr) return nullptr;
  ContextHeap* const winner = list(fresh);
  if (winner != fresh) delete fresh;
  return winner;
}

}  // namespace

ContextList& contexts() noexcept { return listed; }

ContextHeap* listed_heap(CUcontext context) noexcept {
  for (const std::atomic<ContextHeap*>& slot : listed) {
    ContextHeap* const heap = slot.load(std::memory_order_acquire);
    if (heap != nullptr && heap->context == context) return heap;
  }
  return nullptr;
}

ContextHeap* current_heap() noexcept {
  CUcontext context = nullptr;
  if (driver()->cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return nullptr;
  Remembered& known = up_to_date();
  if (known.context != context) {
    known.heap = find_or_make(context);
    known.context = known.heap == nullptr ? nullptr : context;
  }
  return known.heap;
}

ContextHeap* last_heap() noexcept { return up_to_date().heap; }

CUcontext context_of(const StreamRef& stream) noexcept {
  const Driver& real = *driver();
  CUcontext context = nullptr;
  const bool asked = stream.created() && real.cuStreamGetCtx;
  const CUresult result =
      asked ? real.cuStreamGetCtx(stream.handle, &context) : real.cuCtxGetCurrent(&context);
  return result == CUDA_SUCCESS ? context : nullptr;
}

ContextHeap* heap_of(const StreamRef& stream) noexcept {
  if (!stream.created()) return current_heap();
  Remembered& known = up_to_date();
  Remembered::Stream& last =
      known.streams[(stream.id >> 4 ^ stream.id >> 10) % known.streams.size()];
  if (last.handle != stream.handle) {
    const CUcontext context = context_of(stream);
    last.heap = context == nullptr ? nullptr : find_or_make(context);
    last.handle = last.heap == nullptr ? nullptr : stream.handle;
  }
  return last.heap;
}

void forget_remembered() noexcept { generation.fetch_add(1, std::memory_order_acq_rel); }

void retire_context(ContextHeap& heap) noexcept {
  if (!unlist(heap)) return;
  forget_remembered();
  capture::context_gone(heap.context);
  for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
    log::heap_closing(view_of(heap, kind));
  }
  heap.cuda.abandon();
  for (Door* const door : {&heap.synchronous, &heap.stream_ordered}) {
    door->limited.abandon();
    door->ledger.clear();
  }
}

}  // namespace fragshim
