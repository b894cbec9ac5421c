// Contexts that end: their memory is gone, whatever the tables say.
//
// The driver destroys first, since until then the device may still be at work in the memory.
#include "shim/context.hpp"
#include "shim/hooks.hpp"

namespace fragshim {
namespace {

ContextHeap* primary_heap(CUdevice device) noexcept {
  ContextHeap* primary = nullptr;
  each_context([&](ContextHeap& heap) {
    if (heap.primary && heap.gpu.ordinal() == device) primary = &heap;
  });
  return primary;
}

/// `end` asks the driver; `is_over` whether the context is gone then.
template <class End, class IsOver>
CUresult end_context(ContextHeap* heap, End end, IsOver is_over) noexcept {
  forget_remembered();
  const CUresult result = end();
  if (heap != nullptr && result == CUDA_SUCCESS && is_over()) retire_context(*heap);
  return result;
}

template <class End>
CUresult end_context(ContextHeap* heap, End end) noexcept {
  return end_context(heap, end, [] { return true; });
}

/// After a release: others may hold the primary context still.
bool is_inactive(CUdevice device) noexcept {
  unsigned int flags = 0;
  int active = 1;
  const Driver& real = *driver();
  return real.cuDevicePrimaryCtxGetState &&
         real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active == 0;
}

}  // namespace
}  // namespace fragshim

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  FRAGSHIM_ENTER(cuCtxDestroy, context);
  return end_context(listed_heap(context), [&] { return real->cuCtxDestroy(context); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  FRAGSHIM_ENTER(cuCtxDestroy_v2, context);
  return end_context(listed_heap(context), [&] { return real->cuCtxDestroy_v2(context); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  FRAGSHIM_ENTER(cuDevicePrimaryCtxReset, device);
  return end_context(primary_heap(device), [&] { return real->cuDevicePrimaryCtxReset(device); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  FRAGSHIM_ENTER(cuDevicePrimaryCtxReset_v2, device);
  return end_context(primary_heap(device),
                     [&] { return real->cuDevicePrimaryCtxReset_v2(device); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  FRAGSHIM_ENTER(cuDevicePrimaryCtxRelease, device);
  return end_context(
      primary_heap(device), [&] { return real->cuDevicePrimaryCtxRelease(device); },
      [&] { return is_inactive(device); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FRAGSHIM_ENTER(cuDevicePrimaryCtxRelease_v2, device);
  return end_context(
      primary_heap(device), [&] { return real->cuDevicePrimaryCtxRelease_v2(device); },
      [&] { return is_inactive(device); });
}
