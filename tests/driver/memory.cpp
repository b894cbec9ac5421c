// Memory with an address from the start: plain, pitched and managed; what a pointer is; how much
// there is.
#include <algorithm>

#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"
#include "tests/driver/context.hpp"
#include "tests/driver/pools.hpp"

namespace standin {
namespace {

CUresult allocate(Context& context, Bytes size, MemoryKind kind, CUdeviceptr* out) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult refused = unsafe_in_capture(context);
  if (refused != CUDA_SUCCESS) return refused;
  Address address = 0;
  const CUresult verdict = result_of(context.machine->device.allocate_segment(size, &address));
  if (verdict != CUDA_SUCCESS) return verdict;
  Allocation allocation;
  allocation.kind = kind;
  allocation.size = size;
  allocation.context = context.id;
  allocation.device = context.machine->ordinal;
  allocation.buffer_id = new_id();
  const Lock lock(driver().mutex);
  driver().allocations[address] = allocation;
  *out = address;
  return CUDA_SUCCESS;
}

CUresult allocate_pitch(Context& context, CUdeviceptr* out, size_t* pitch, size_t width,
                        size_t height, unsigned element) {
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  *pitch = fragshim::round_up(width, 512);
  if (*pitch > fragshim::unlimited / height) return CUDA_ERROR_OUT_OF_MEMORY;
  return allocate(context, *pitch * height, MemoryKind::plain, out);
}

/// cuMemFree waits until the device is idle, whatever it frees.
CUresult free_and_wait(Context& context, CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  const CUresult refused = unsafe_in_capture(context);
  if (refused != CUDA_SUCCESS) return refused;
  Machine* machine = nullptr;
  {
    const Lock lock(driver().mutex);
    const auto found = driver().allocations.find(address);
    if (found == driver().allocations.end() || found->second.kind == MemoryKind::host ||
        found->second.kind == MemoryKind::imported) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    machine = machine_of(found->second.device);
  }
  machine->device.complete_all();
  return free_allocation(address);
}

CUresult memory_info(Context& context, size_t* free, size_t* total) {
  Bytes free_bytes = 0;
  Bytes total_bytes = 0;
  const auto status = context.machine->device.memory_info(&free_bytes, &total_bytes);
  if (free != nullptr) *free = free_bytes;
  if (total != nullptr) *total = total_bytes;
  return result_of(status);
}

CUresult address_range(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  {
    const Lock lock(driver().mutex);
    const auto found = allocation_of(address);
    if (found != driver().allocations.end() && found->second.kind != MemoryKind::host) {
      if (base != nullptr) *base = found->first;
      if (size != nullptr) *size = found->second.size;
      return CUDA_SUCCESS;
    }
  }
  // Of mapped memory, it is the mapping.
  Machine* machine = machine_at(address);
  const auto location =
      machine == nullptr ? std::nullopt : machine->device.mapped_physical(address);
  if (!location) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = address - location->offset;
  if (size != nullptr) *size = location->offset + location->size;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult free_allocation(Address address) {
  Allocation allocation;
  {
    const Lock lock(driver().mutex);
    const auto found = driver().allocations.find(address);
    if (found == driver().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    allocation = found->second;
    driver().allocations.erase(found);
  }
  Machine* machine = machine_of(allocation.device);
  switch (allocation.kind) {
    case MemoryKind::plain:
    case MemoryKind::managed:
      return result_of(machine->device.release_segment(address, allocation.size));
    case MemoryKind::graph:
      keep_for_graph(allocation);
      return CUDA_SUCCESS;
    case MemoryKind::pool:
      give_to_pool(*allocation.pool, address, allocation.size);
      return CUDA_SUCCESS;
    case MemoryKind::host:
      return release_host(address, allocation);
    case MemoryKind::imported:
      return release_imported(*machine, address, allocation.size);
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  return context_entry("cuMemAlloc_v2", [&](Context& context) {
    return allocate(context, size, MemoryKind::plain, out);
  });
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                    unsigned int element) {
  return context_entry("cuMemAllocPitch_v2", [&](Context& context) {
    return allocate_pitch(context, out, pitch, width, height, element);
  });
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags) {
  return context_entry("cuMemAllocManaged", [&](Context& context) {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate(context, size, MemoryKind::managed, out);
  });
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  return context_entry("cuMemFree_v2",
                       [&](Context& context) { return free_and_wait(context, address); });
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  return context_entry("cuMemGetInfo_v2",
                       [&](Context& context) { return memory_info(context, free, total); });
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return context_entry("cuMemGetAddressRange_v2",
                       [&](Context&) { return address_range(base, size, address); });
}

}  // extern "C"

/// Bytes of a device that are taken; for tests.
extern "C" unsigned long long standin_used(int device) {
  Machine* machine = machine_of(device);
  return machine == nullptr ? 0 : machine->device.used();
}

/// Pieces of work of a device that are not done; for tests.
extern "C" unsigned long long standin_pending(int device) {
  Machine* machine = machine_of(device);
  return machine == nullptr ? 0 : machine->order().pending();
}
