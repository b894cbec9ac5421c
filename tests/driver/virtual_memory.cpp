// Virtual memory: addresses, physical memory, and mappings of one to the other. All of it belongs
// to a device, not to a context.
#include <sys/mman.h>

#include <iterator>
#include <map>

#include "tests/driver/call.hpp"
#include "tests/driver/context.hpp"
#include "tests/driver/settings.hpp"

namespace standin {
namespace {

using fragshim::Physical;

/// An entry that only a GPU with virtual memory management supports.
template <class Body>
CUresult virtual_entry(const char* name, Body body) noexcept {
  return entry(name, [&] { return settings().virtual_memory ? body() : CUDA_ERROR_NOT_SUPPORTED; });
}

// A handle holds the device in its upper half, the device's own number below.
CUmemGenericAllocationHandle handle_of(const Machine& machine, Physical memory) {
  return (static_cast<CUmemGenericAllocationHandle>(machine.ordinal) + 1) << 48 | memory.handle;
}

Machine* machine_with(CUmemGenericAllocationHandle handle) {
  return machine_of(static_cast<CUdevice>(handle >> 48) - 1);
}

Physical physical_of(CUmemGenericAllocationHandle handle) {
  return {handle & ((CUmemGenericAllocationHandle{1} << 48) - 1)};
}

bool on_device(const CUmemAllocationProp* properties) {
  return properties != nullptr && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult reserve(CUdeviceptr* out, size_t size, size_t alignment) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  // On a real machine addresses belong to no device. Here they do, so one guesses whose memory
  // will be mapped there: the current context's device's.
  const Context* context = current_context();
  Machine& machine = context != nullptr ? *context->machine : *driver().machines.front();
  Address address = 0;
  const CUresult verdict = result_of(machine.device.reserve_aligned(size, alignment, &address));
  if (verdict == CUDA_SUCCESS) *out = address;
  return verdict;
}

CUresult unreserve(CUdeviceptr address, size_t size) {
  Machine* machine = machine_at(address);
  if (machine == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return result_of(machine->device.unreserve(address, size));
}

/// Nothing can touch a new mapping before it is given access.
CUresult map(CUdeviceptr address, size_t size, Machine& machine, Physical memory) {
  const CUresult verdict = result_of(machine.device.map(address, size, memory));
  if (verdict != CUDA_SUCCESS) return verdict;
  mprotect(reinterpret_cast<void*>(address), size, PROT_NONE);
  const Lock lock(driver().mutex);
  driver().without_access[address] = size;
  return CUDA_SUCCESS;
}

/// Takes what begins in a range off a list.
void forget(std::map<Address, Bytes>& list, CUdeviceptr address, size_t size) {
  list.erase(list.lower_bound(address), list.lower_bound(address + size));
}

CUresult unmap(CUdeviceptr address, size_t size) {
  Machine* machine = machine_at(address);
  if (machine == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult verdict = result_of(machine->device.unmap(address, size));
  if (verdict != CUDA_SUCCESS) return verdict;
  const Lock lock(driver().mutex);
  forget(driver().without_access, address, size);
  for (auto& [device, ranges] : driver().peer_access) forget(ranges, address, size);
  return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc* access, size_t count) {
  Machine* machine = machine_at(address);
  if (machine == nullptr || access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<fragshim::Touch> mapped;
  if (!machine->device.touches(address, size, fragshim::Access::read, &mapped)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (machine_of(access[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  }
  const Lock lock(driver().mutex);
  for (size_t i = 0; i < count; ++i) {
    const CUdevice device = access[i].location.id;
    const bool all = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (device == machine->ordinal) {
      if (!all) return CUDA_ERROR_NOT_SUPPORTED;
      mprotect(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE);
      forget(driver().without_access, address, size);
    } else {
      forget(driver().peer_access[device], address, size);
      if (all) driver().peer_access[device][address] = size;
    }
  }
  return CUDA_SUCCESS;
}

/// Whether a device may touch an address of a machine's.
bool has_access(CUdevice device, const Machine& machine, CUdeviceptr address) {
  const Lock lock(driver().mutex);
  if (device == machine.ordinal) return !lacks_access(address, 1);
  const auto& ranges = driver().peer_access[device];
  auto next = ranges.upper_bound(address);
  return next != ranges.begin() && address - std::prev(next)->first < std::prev(next)->second;
}

CUresult get_access(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  Machine* machine = machine_at(address);
  if (flags == nullptr || location == nullptr || machine == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!machine->device.mapped_physical(address)) return CUDA_ERROR_INVALID_VALUE;
  const bool all = has_access(location->id, *machine, address);
  *flags = all ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags) {
  return virtual_entry("cuMemGetAllocationGranularity", [&] {
    if (out == nullptr || !on_device(properties)) return CUDA_ERROR_INVALID_VALUE;
    Machine* machine = machine_of(properties->location.id);
    if (machine == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *out = machine->device.granularity();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr,
                                     unsigned long long flags) {
  return virtual_entry("cuMemAddressReserve", [&] {
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : reserve(out, size, alignment);
  });
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t size) {
  return virtual_entry("cuMemAddressFree", [&] { return unreserve(address, size); });
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* out, size_t size,
                             const CUmemAllocationProp* properties, unsigned long long flags) {
  return virtual_entry("cuMemCreate", [&] {
    if (out == nullptr || flags != 0 || !on_device(properties)) return CUDA_ERROR_INVALID_VALUE;
    Machine* machine = machine_of(properties->location.id);
    if (machine == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    Physical memory;
    const CUresult verdict = result_of(machine->device.create(size, &memory));
    if (verdict == CUDA_SUCCESS) *out = handle_of(*machine, memory);
    return verdict;
  });
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  return virtual_entry("cuMemRelease", [&] {
    Machine* machine = machine_with(handle);
    if (machine == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Physical memory = physical_of(handle);
    const Bytes size = machine->device.physical_size(memory);
    return size == 0 ? CUDA_ERROR_INVALID_VALUE : result_of(machine->device.destroy(memory, size));
  });
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return virtual_entry("cuMemMap", [&] {
    Machine* machine = machine_with(handle);
    if (machine == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (offset != 0) return CUDA_ERROR_NOT_SUPPORTED;
    // Its bytes lie in its own device's file, so its addresses must be that device's, too.
    if (machine_at(address) != machine) return CUDA_ERROR_NOT_SUPPORTED;
    return map(address, size, *machine, physical_of(handle));
  });
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
  return virtual_entry("cuMemUnmap", [&] { return unmap(address, size); });
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* access,
                                size_t count) {
  return virtual_entry("cuMemSetAccess", [&] { return set_access(address, size, access, count); });
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                CUdeviceptr address) {
  return virtual_entry("cuMemGetAccess", [&] { return get_access(flags, location, address); });
}

}  // extern "C"
