// The synchronous door: cudaMalloc, cudaMallocPitch and cudaFree, as they reach the driver.
#include <algorithm>
#include <limits>

#include "shim/door.hpp"
#include "shim/hooks.hpp"

namespace fragshim {
namespace {

template <class Pass>
CUresult allocate(CUdeviceptr* out, std::size_t size, Pass pass) noexcept {
  ContextHeap* const here = current_heap();
  if (here == nullptr || out == nullptr || size == 0) return pass();
  return allocate_through(*here, HeapKind::synchronous, out, size, legacy_stream, pass);
}

/// Rows start where textures and coalesced accesses may: as the driver's do.
std::size_t pitch_of(const ContextHeap& heap, std::size_t width) noexcept {
  int alignment = 0;
  driver()->cuDeviceGetAttribute(&alignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT,
                                 heap.gpu.ordinal());
  return round_up(width, std::max<Bytes>(512, static_cast<Bytes>(std::max(alignment, 0))));
}

/// What cudaFree did besides freeing: wait for the device. Some programs use it as a barrier.
void wait_if_strict() noexcept {
  ContextHeap* const here = settings().strict_free ? current_heap() : nullptr;
  if (here != nullptr) here->cuda.synchronize();
}

}  // namespace
}  // namespace fragshim

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  FRAGSHIM_ENTER(cuMemAlloc_v2, out, size);
  return allocate(out, size, [&] { return real->cuMemAlloc_v2(out, size); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width,
                                                    size_t height, unsigned int element_size) {
  FRAGSHIM_ENTER(cuMemAllocPitch_v2, out, pitch, width, height, element_size);
  const auto pass = [&] {
    return real->cuMemAllocPitch_v2(out, pitch, width, height, element_size);
  };
  const bool usual = element_size == 4 || element_size == 8 || element_size == 16;
  ContextHeap* const here = current_heap();
  if (!usual || here == nullptr || !here->synchronous.heap || !out || !pitch || width == 0 ||
      height == 0) {
    const CUresult result = pass();
    if (result == CUDA_SUCCESS && here != nullptr) {
      note_passed(*here, HeapKind::synchronous, *pitch * height, legacy_stream, result, out);
    }
    return result;
  }
  const std::size_t row = pitch_of(*here, width);
  if (row > std::numeric_limits<std::size_t>::max() / height) return pass();
  const CUresult result = allocate(out, row * height, pass);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  FRAGSHIM_ENTER(cuMemFree_v2, address);
  const auto pass = [&] { return real->cuMemFree_v2(address); };
  if (address == 0) return pass();
  wait_if_strict();
  // The address tells where the block lies, whichever context is current.
  return free_through(last_heap(), HeapKind::synchronous, address, {}, pass);
}
