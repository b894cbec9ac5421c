// The stream-ordered door: cudaMallocAsync and cudaFreeAsync, as they reach the driver.
#include "shim/capture.hpp"
#include "shim/door.hpp"
#include "shim/hooks.hpp"

namespace fragshim {
namespace {

/// Whether memory of `pool` (null: the current one) is the shim's to give. Pools that the program
/// made, with properties of their own, are the driver's.
bool is_served(const Gpu& gpu, CUmemoryPool pool) noexcept {
  if (pool == nullptr) return !gpu.other_pool.load(std::memory_order_relaxed);
  return pool == gpu.default_pool.load(std::memory_order_relaxed);
}

/// On a stream that is being captured an allocation is a node of the graph: the driver's business.
template <class Pass>
CUresult allocate(CUdeviceptr* out, std::size_t size, CUmemoryPool pool, const StreamRef& stream,
                  Pass pass) noexcept {
  ContextHeap* const heap = heap_of(stream);
  if (heap == nullptr || out == nullptr || size == 0 || !is_served(heap->gpu, pool) ||
      capture::holds(stream)) {
    return pass();
  }
  return allocate_through(*heap, HeapKind::stream_ordered, out, size, stream.id, pass);
}

template <class Pass>
CUresult free(CUdeviceptr address, const StreamRef& stream, Pass pass) noexcept {
  if (address == 0 || capture::holds(stream)) return pass();
  // Where the driver will not tell the stream's context, the block is found all the same.
  ContextHeap* const heap = heap_of(stream);
  return free_through(heap, HeapKind::stream_ordered, address, stream, pass);
}

}  // namespace
}  // namespace fragshim

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream) {
  FRAGSHIM_ENTER(cuMemAllocAsync, out, size, stream);
  return allocate(out, size, nullptr, identify(stream, false),
                  [&] { return real->cuMemAllocAsync(out, size, stream); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t size,
                                                      CUstream stream) {
  FRAGSHIM_ENTER(cuMemAllocAsync_ptsz, out, size, stream);
  return allocate(out, size, nullptr, identify(stream, true),
                  [&] { return real->cuMemAllocAsync_ptsz(out, size, stream); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size,
                                                         CUmemoryPool pool, CUstream stream) {
  FRAGSHIM_ENTER(cuMemAllocFromPoolAsync, out, size, pool, stream);
  const auto pass = [&] { return real->cuMemAllocFromPoolAsync(out, size, pool, stream); };
  if (pool == nullptr) return pass();
  return allocate(out, size, pool, identify(stream, false), pass);
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t size,
                                                              CUmemoryPool pool, CUstream stream) {
  FRAGSHIM_ENTER(cuMemAllocFromPoolAsync_ptsz, out, size, pool, stream);
  const auto pass = [&] { return real->cuMemAllocFromPoolAsync_ptsz(out, size, pool, stream); };
  if (pool == nullptr) return pass();
  return allocate(out, size, pool, identify(stream, true), pass);
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  FRAGSHIM_ENTER(cuMemFreeAsync, address, stream);
  return free(address, identify(stream, false),
              [&] { return real->cuMemFreeAsync(address, stream); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  FRAGSHIM_ENTER(cuMemFreeAsync_ptsz, address, stream);
  return free(address, identify(stream, true),
              [&] { return real->cuMemFreeAsync_ptsz(address, stream); });
}
