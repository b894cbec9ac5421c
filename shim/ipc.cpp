#include "shim/ipc.hpp"

#include "shim/context.hpp"
#include "shim/hooks.hpp"

namespace fragshim::ipc {
namespace {

/// The heap of this door that holds `address`, in whichever context.
Heap* holder(HeapKind kind, CUdeviceptr address) noexcept {
  Heap* found = nullptr;
  each_context([&](ContextHeap& context) {
    Heap* const heap = context.door(kind).heap.get();
    if (found == nullptr && heap != nullptr && heap->contains(address)) found = heap;
  });
  return found;
}

}  // namespace

Export prepare(CUdeviceptr address) noexcept {
  if (Heap* const heap = holder(HeapKind::synchronous, address)) {
    return heap->pin_segment(address) ? Export::whole : Export::interior;
  }
  return holder(HeapKind::stream_ordered, address) != nullptr ? Export::unmapped : Export::foreign;
}

void pin_around(CUdeviceptr address) noexcept {
  Heap* const heap = holder(HeapKind::synchronous, address);
  CUdeviceptr base = 0;
  if (heap != nullptr &&
      driver()->cuMemGetAddressRange_v2(&base, nullptr, address) == CUDA_SUCCESS) {
    heap->pin_segment(base);
  }
}

}  // namespace fragshim::ipc

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  FRAGSHIM_ENTER(cuIpcGetMemHandle, handle, address);
  switch (ipc::prepare(address)) {
    case ipc::Export::whole:
    case ipc::Export::foreign:
      return real->cuIpcGetMemHandle(handle, address);
    case ipc::Export::interior:
      log::warning("ipc_interior",
                   "cuIpcGetMemHandle refused: this block shares its segment with others, and the "
                   "handle would mean another one; FRAGSHIM_IPC=dedicated gives every cudaMalloc a "
                   "segment of its own");
      return CUDA_ERROR_NOT_SUPPORTED;
    case ipc::Export::unmapped:
      log::warning("ipc_stream_ordered",
                   "cuIpcGetMemHandle refused: stream-ordered memory cannot be exported, with or "
                   "without fragshim; memory to share comes from cudaMalloc with "
                   "FRAGSHIM_IPC=dedicated (PyTorch: FRAGSHIM_TORCH=native)");
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_UNKNOWN;
}

// Synchronous copies are a property of whole segments: nothing else may come to lie in one.
FRAGSHIM_EXPORT CUresult CUDAAPI cuPointerSetAttribute(const void* value,
                                                       CUpointer_attribute attribute,
                                                       CUdeviceptr address) {
  FRAGSHIM_ENTER(cuPointerSetAttribute, value, attribute, address);
  if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) ipc::pin_around(address);
  return real->cuPointerSetAttribute(value, attribute, address);
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address,
                                                               size_t size,
                                                               CUmemRangeHandleType type,
                                                               unsigned long long flags) {
  FRAGSHIM_ENTER(cuMemGetHandleForAddressRange, handle, address, size, type, flags);
  ipc::pin_around(address);
  return real->cuMemGetHandleForAddressRange(handle, address, size, type, flags);
}
