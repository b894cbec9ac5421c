// Host memory that the driver gives or knows.
#include <sys/mman.h>

#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"
#include "tests/driver/context.hpp"

namespace standin {
namespace {

void enter(Context& context, void* at, Bytes size, bool ours) {
  Allocation allocation;
  allocation.kind = MemoryKind::host;
  allocation.size = size;
  allocation.context = ours ? context.id : 0;
  allocation.device = context.machine->ordinal;
  allocation.buffer_id = new_id();
  allocation.registered = !ours;
  const Lock lock(driver().mutex);
  driver().allocations[reinterpret_cast<Address>(at)] = allocation;
}

CUresult allocate_host(Context& context, void** out, size_t size) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult refused = unsafe_in_capture(context);
  if (refused != CUDA_SUCCESS) return refused;
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  enter(context, at, size, true);
  *out = at;
  return CUDA_SUCCESS;
}

/// The host memory that begins at a pointer; `registered` says which sort. Null size: none.
bool is_host_memory(void* pointer, bool registered) {
  const Lock lock(driver().mutex);
  const auto found = driver().allocations.find(reinterpret_cast<Address>(pointer));
  return found != driver().allocations.end() && found->second.kind == MemoryKind::host &&
         found->second.registered == registered;
}

}  // namespace

CUresult release_host(Address address, const Allocation& allocation) {
  if (!allocation.registered) munmap(reinterpret_cast<void*>(address), allocation.size);
  return CUDA_SUCCESS;
}

}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuMemAllocHost_v2(void** out, size_t size) {
  return context_entry("cuMemAllocHost_v2",
                       [&](Context& context) { return allocate_host(context, out, size); });
}

CUresult CUDAAPI cuMemHostAlloc(void** out, size_t size, unsigned int) {
  return context_entry("cuMemHostAlloc",
                       [&](Context& context) { return allocate_host(context, out, size); });
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return context_entry("cuMemFreeHost", [&](Context& context) {
    if (pointer == nullptr) return CUDA_SUCCESS;
    const CUresult refused = unsafe_in_capture(context);
    if (refused != CUDA_SUCCESS) return refused;
    if (!is_host_memory(pointer, false)) return CUDA_ERROR_INVALID_VALUE;
    context.machine->device.complete_all();
    return free_allocation(reinterpret_cast<Address>(pointer));
  });
}

CUresult CUDAAPI cuMemHostRegister_v2(void* pointer, size_t size, unsigned int) {
  return context_entry("cuMemHostRegister_v2", [&](Context& context) {
    if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (is_host_memory(pointer, true) || is_host_memory(pointer, false)) {
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    enter(context, pointer, size, false);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  return context_entry("cuMemHostUnregister", [&](Context&) {
    if (!is_host_memory(pointer, true)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    return free_allocation(reinterpret_cast<Address>(pointer));
  });
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned int) {
  return context_entry("cuMemHostGetDevicePointer_v2", [&](Context&) {
    const Lock lock(driver().mutex);
    const auto found = allocation_of(reinterpret_cast<Address>(pointer));
    if (out == nullptr || found == driver().allocations.end() ||
        found->second.kind != MemoryKind::host) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *out = reinterpret_cast<CUdeviceptr>(pointer);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
