#include "shim/door.hpp"

#include "config/settings.hpp"
#include "core/alloc/policy.hpp"
#include "shim/driver.hpp"
#include "shim/process.hpp"

namespace fragshim {
namespace {

/// The streams on which a door's memory may be used, by a request on `stream`: cudaMalloc names
/// none, and means all.
constexpr StreamId reach(HeapKind kind, StreamId stream) {
  return kind == HeapKind::synchronous ? all_streams : stream;
}

constexpr HeapKind other(HeapKind kind) {
  return kind == HeapKind::synchronous ? HeapKind::stream_ordered : HeapKind::synchronous;
}

void report_failure(ContextHeap& heap, HeapKind kind, Bytes size, StreamId stream) noexcept {
  log::FailureReport report;
  report.device = heap.gpu.ordinal();
  report.kind = kind;
  report.stream = stream;
  FailureEvidence& evidence = report.evidence;
  evidence = gather_evidence(heap.door(kind).shown(), size, reach(kind, stream));
  const AllocationConfig& config = settings().allocation;
  evidence.rounded = policy::round_size(config, size);
  evidence.segment_size = kind == HeapKind::stream_ordered
                              ? evidence.rounded
                              : policy::segment_size(config, evidence.rounded);
  const Bytes limit = heap.gpu.budget.limit();
  evidence.limit = limit == unlimited ? 0 : limit;
  evidence.held = heap.gpu.budget.held();
  if (!heap.cuda.memory_info(&evidence.device_free, &evidence.device_total).ok()) {
    evidence.device_free = 0;
    evidence.device_total = heap.gpu.total.load(std::memory_order_relaxed);
  }
  log::failure(report);
}

/// Logs the retries of a heap that it knows nothing of yet. Looks only when the heap has given
/// memory back since it last looked, which no retry does without.
void note_retries(ContextHeap& heap, HeapKind kind, Bytes size, StreamId stream) noexcept {
  Door& door = heap.door(kind);
  const std::uint64_t given_back = door.metered.device_free();
  if (door.device_free.load(std::memory_order_relaxed) == given_back) return;
  door.device_free.store(given_back, std::memory_order_relaxed);
  const Counters now = door.heap->counters();
  if (door.retries.exchange(now.retries, std::memory_order_relaxed) == now.retries) return;
  log::retry({heap.gpu.ordinal(), kind, stream, size, now.reserved});
}

/// The retries of a request that failed all the same are told by its own record.
void forget_retries(ContextHeap& heap, HeapKind kind) noexcept {
  Door& door = heap.door(kind);
  door.device_free.store(door.metered.device_free(), std::memory_order_relaxed);
  door.retries.store(door.heap->counters().retries, std::memory_order_relaxed);
}

/// The first request of a process opens its trace: before it is traced.
CUresult served(ContextHeap& heap, HeapKind kind, Address address, Bytes size,
                StreamId stream) noexcept {
  if (!heap.gpu.announced.load(std::memory_order_relaxed)) announce(heap);
  trace_allocate(kind, address, size, stream);
  note_retries(heap, kind, size, stream);
  log::tick();
  return CUDA_SUCCESS;
}

/// The device has said that it can do what the heap needs, and cannot. The program, which never
/// asked for that, goes on.
void warn_of_unsupported() noexcept {
  log::warning(
      "unsupported",
      "the driver refuses what fragshim makes memory of: such requests go to the driver as "
      "they are, uncounted");
}

/// The second half of serve(): the heap has refused, with `status`.
std::optional<CUresult> serve_under_pressure(ContextHeap& heap, HeapKind kind, Bytes size,
                                             StreamId stream, Status status,
                                             CUdeviceptr* out) noexcept {
  if (!status.no_memory()) {
    const bool unsupported = status.outcome == Outcome::unsupported;
    if (unsupported) warn_of_unsupported();
    if (unsupported || status.code == 0) return {};
    return static_cast<CUresult>(status.code);
  }
  Heap& from = *heap.door(kind).heap;
  const bool hopeless = size > heap.gpu.total.load(std::memory_order_relaxed);
  if (!hopeless && relieve(heap.gpu, &from) != 0) {
    const Grant grant = from.allocate(size, reach(kind, stream));
    if (grant.status.ok()) {
      *out = grant.address;
      log::retry({heap.gpu.ordinal(), kind, stream, size, from.counters().reserved});
      return served(heap, kind, grant.address, size, stream);
    }
  }
  announce(heap);
  trace_failure(kind, size, stream);
  report_failure(heap, kind, size, stream);
  forget_retries(heap, kind);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/// A free that reaches a context from outside: of its streams none can be named, so the block comes
/// back behind all of them, and the stream that the program named is waited for.
bool take_back_from(ContextHeap& owner, CUdeviceptr address, const StreamRef& stream) noexcept {
  for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
    Heap* const heap = owner.door(kind).heap.get();
    if (heap == nullptr || !heap->contains(address)) continue;
    if (stream.created()) driver()->cuStreamSynchronize(stream.handle);
    if (heap->free(address, all_streams).ok()) return true;
  }
  return false;
}

bool is_ours(CUdeviceptr address) noexcept {
  bool ours = false;
  each_context([&](ContextHeap& heap) {
    for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
      const Heap* const served = heap.door(kind).heap.get();
      ours = ours || (served != nullptr && served->contains(address));
    }
  });
  return ours;
}

}  // namespace

std::optional<CUresult> serve(ContextHeap& heap, HeapKind kind, Bytes size, StreamId stream,
                              CUdeviceptr* out) noexcept {
  const Grant grant = heap.door(kind).heap->allocate(size, reach(kind, stream));
  if (!grant.status.ok()) {
    return serve_under_pressure(heap, kind, size, stream, grant.status, out);
  }
  *out = grant.address;
  return served(heap, kind, grant.address, size, stream);
}

std::optional<CUresult> take_back(ContextHeap* likely, HeapKind kind, CUdeviceptr address,
                                  const StreamRef& stream) noexcept {
  const StreamId order = reach(kind, stream.id);
  for (const HeapKind from : {kind, other(kind)}) {
    Heap* const heap = likely == nullptr ? nullptr : likely->door(from).heap.get();
    if (heap == nullptr || !heap->free(address, order).ok()) continue;
    log::tick();
    return CUDA_SUCCESS;
  }
  bool taken = false;
  each_context([&](ContextHeap& owner) {
    taken = taken || (&owner != likely && take_back_from(owner, address, stream));
  });
  if (taken) return CUDA_SUCCESS;
  if (is_ours(address)) return CUDA_ERROR_INVALID_VALUE;
  return {};
}

Ledger* strike_off(CUdeviceptr address, Ledger::Entry* entry) noexcept {
  if (managed_memory().remove(address, entry)) return &managed_memory();
  Ledger* found = nullptr;
  each_context([&](ContextHeap& heap) {
    for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
      Ledger& ledger = heap.door(kind).ledger;
      if (found == nullptr && ledger.remove(address, entry)) found = &ledger;
    }
  });
  return found;
}

void note_passed(ContextHeap& heap, HeapKind kind, Bytes size, StreamId stream, CUresult result,
                 const CUdeviceptr* out) noexcept {
  Door& door = heap.door(kind);
  if (door.heap != nullptr) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    announce(heap);
    trace_failure(kind, size, stream);
    report_failure(heap, kind, size, stream);
  }
  if (result != CUDA_SUCCESS || size == 0) return;
  door.ledger.add(*out, size, stream);
  if (!heap.gpu.announced.load(std::memory_order_relaxed)) announce(heap);
  trace_allocate(kind, *out, size, stream);
  log::sample_if_due();
}

Bytes relieve(Gpu& gpu, const Heap* except) noexcept {
  Bytes released = 0;
  each_context_on(gpu, [&](ContextHeap& heap) {
    for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
      Heap* const served = heap.door(kind).heap.get();
      if (served != nullptr && served != except) released += served->trim(0);
    }
  });
  return released;
}

}  // namespace fragshim
