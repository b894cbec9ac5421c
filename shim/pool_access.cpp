// Which pool is a GPU's current one, and which GPUs may use the default pool's memory.
#include "shim/context.hpp"
#include "shim/hooks.hpp"

using namespace fragshim;

namespace {

void note_current_pool(CUdevice device, CUmemoryPool pool) noexcept {
  Gpu* const gpu = gpu_at(device);
  if (gpu == nullptr) return;
  const bool other = pool != gpu->default_pool.load(std::memory_order_relaxed);
  gpu->other_pool.store(other, std::memory_order_relaxed);
}

}  // namespace

FRAGSHIM_EXPORT CUresult CUDAAPI cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  FRAGSHIM_ENTER(cuDeviceSetMemPool, device, pool);
  const CUresult result = real->cuDeviceSetMemPool(device, pool);
  if (result == CUDA_SUCCESS) note_current_pool(device, pool);
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                                 CUmemoryPool pool) {
  FRAGSHIM_ENTER(cuMemSetMemPool, location, type, pool);
  const CUresult result = real->cuMemSetMemPool(location, type, pool);
  if (result == CUDA_SUCCESS && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
      type == CU_MEM_ALLOCATION_TYPE_PINNED) {
    note_current_pool(location->id, pool);
  }
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool,
                                                    const CUmemAccessDesc* access, size_t count) {
  FRAGSHIM_ENTER(cuMemPoolSetAccess, pool, access, count);
  CUresult result = real->cuMemPoolSetAccess(pool, access, count);
  Gpu* const gpu = result == CUDA_SUCCESS ? gpu_of_default_pool(pool) : nullptr;
  if (gpu == nullptr) return result;
  gpu->peers.set(access, count);  // first: what is mapped from here on is given access by it
  each_context_on(*gpu, [&](ContextHeap& heap) {
    const CUresult applied = heap.cuda.apply_access(access, count);
    if (applied != CUDA_SUCCESS) result = applied;
  });
  return result;
}

// The driver's own pool has been told of every change, so it knows the answer.
FRAGSHIM_EXPORT CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool,
                                                    CUmemLocation* location) {
  FRAGSHIM_ENTER(cuMemPoolGetAccess, flags, pool, location);
  return real->cuMemPoolGetAccess(flags, pool, location);
}
