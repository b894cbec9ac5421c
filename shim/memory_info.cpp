// Free memory, as a program that plans by it must see it: what is cached here is free to it.
#include <algorithm>

#include "shim/context.hpp"
#include "shim/hooks.hpp"

namespace fragshim {
namespace {

/// Bytes that the heaps of a GPU would give back if they had to.
Bytes releasable(const Gpu& gpu) noexcept {
  Bytes sum = 0;
  each_context_on(gpu, [&](ContextHeap& heap) {
    for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
      const Heap* const served = heap.door(kind).heap.get();
      if (served != nullptr) sum += served->usage().releasable;
    }
  });
  return sum;
}

}  // namespace
}  // namespace fragshim

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  FRAGSHIM_ENTER(cuMemGetInfo_v2, free, total);
  size_t free_now = 0;
  size_t all = 0;
  if (free == nullptr) return real->cuMemGetInfo_v2(free, total);
  const CUresult result = real->cuMemGetInfo_v2(&free_now, &all);
  if (result != CUDA_SUCCESS) return result;
  const ContextHeap* const here = current_heap();
  if (here != nullptr) free_now = std::min<Bytes>(all, free_now + releasable(here->gpu));
  *free = free_now;
  if (total != nullptr) *total = all;
  return result;
}
