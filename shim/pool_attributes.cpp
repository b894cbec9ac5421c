// The default pool's statistics: what the heaps hold, on top of what the driver's pool does. The
// other attributes are the driver's pool's own; it keeps them as they are set.
#include "shim/context.hpp"
#include "shim/hooks.hpp"
#include "shim/trace.hpp"

namespace fragshim {
namespace {

bool is_statistic(CUmemPool_attribute attribute) noexcept {
  return attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
         attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
         attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
         attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

Bytes statistic(const Counters& counters, CUmemPool_attribute attribute) noexcept {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return counters.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return counters.reserved_peak;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return counters.allocated;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return counters.allocated_peak;
    default:
      return 0;
  }
}

/// Calls `function` with every heap that stands behind a GPU's default pool.
template <class Function>
void each_pool_heap(const Gpu& gpu, Function function) {
  each_context_on(gpu, [&](ContextHeap& context) {
    if (Heap* const heap = context.stream_ordered.heap.get()) function(*heap);
  });
}

}  // namespace
}  // namespace fragshim

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool,
                                                       CUmemPool_attribute attribute, void* value) {
  FRAGSHIM_ENTER(cuMemPoolGetAttribute, pool, attribute, value);
  const CUresult result = real->cuMemPoolGetAttribute(pool, attribute, value);
  if (result != CUDA_SUCCESS || !is_statistic(attribute)) return result;
  const Gpu* const gpu = gpu_of_default_pool(pool);
  if (gpu == nullptr) return result;
  auto& sum = *static_cast<cuuint64_t*>(value);
  each_pool_heap(*gpu, [&](Heap& heap) { sum += statistic(heap.counters(), attribute); });
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool,
                                                       CUmemPool_attribute attribute, void* value) {
  FRAGSHIM_ENTER(cuMemPoolSetAttribute, pool, attribute, value);
  const CUresult result = real->cuMemPoolSetAttribute(pool, attribute, value);
  if (result != CUDA_SUCCESS || !is_statistic(attribute)) return result;
  const Gpu* const gpu = gpu_of_default_pool(pool);
  if (gpu == nullptr) return result;
  // The driver takes no other value than 0, and only for the high marks: to set them back.
  each_pool_heap(*gpu, [&](Heap& heap) {
    heap.reset_peaks(attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH,
                     attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
  });
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  FRAGSHIM_ENTER(cuMemPoolTrimTo, pool, keep);
  const CUresult result = real->cuMemPoolTrimTo(pool, keep);
  if (result != CUDA_SUCCESS) return result;
  const Gpu* const gpu = gpu_of_default_pool(pool);
  if (gpu == nullptr) return result;
  trace_trim();
  each_pool_heap(*gpu, [&](Heap& heap) {
    const Bytes released = heap.trim(keep);
    log::trim({gpu->ordinal(), HeapKind::stream_ordered, keep, released, heap.counters().reserved});
  });
  return result;
}
