// The driver and its devices: initialisation and what there is to know about them.
#include <cstdio>
#include <cstring>

#include "tests/driver/call.hpp"
#include "tests/driver/context.hpp"
#include "tests/driver/pools.hpp"
#include "tests/driver/reentry.hpp"
#include "tests/driver/settings.hpp"

namespace standin {
namespace {

CUresult initialise() {
  Driver& all = driver();
  const Lock lock(all.mutex);
  if (initialised()) return CUDA_SUCCESS;
  all.machines = make_machines();
  if (all.machines.empty()) return CUDA_ERROR_NO_DEVICE;
  for (const auto& machine : all.machines) {
    all.contexts.push_back(std::make_unique<Context>());
    all.contexts.back()->machine = machine.get();
    all.contexts.back()->primary = true;
    all.primaries.push_back(all.contexts.back().get());
    make_default_pool(*machine);
  }
  set_initialised();
  return CUDA_SUCCESS;
}

int attribute_value(const Machine& machine, CUdevice_attribute attribute) {
  switch (static_cast<int>(attribute)) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 4;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return machine.ordinal + 1;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return settings().virtual_memory ? 1 : 0;
    default:
      return 0;
  }
}

void fill_uuid(CUuuid* uuid, int ordinal) {
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  std::memcpy(uuid->bytes, "stand-in", 8);
  uuid->bytes[15] = static_cast<char>(ordinal + 1);
}

/// An entry that asks about one device.
template <class Body>
CUresult device_entry(const char* name, CUdevice device, Body body) {
  return entry(name, [&] {
    Machine* machine = machine_of(device);
    return machine == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*machine);
  });
}

}  // namespace
}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuInit(unsigned int flags) {
  return entry(
      "cuInit",
      [&] {
        if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
        const bool first = !initialised();
        if (first && reenter(false) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
        const CUresult result = initialise();
        return first && result == CUDA_SUCCESS ? reenter(true) : result;
      },
      false);
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return entry(
      "cuDriverGetVersion",
      [&] {
        if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *version = settings().version;
        return CUDA_SUCCESS;
      },
      false);
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return entry("cuDeviceGetCount", [&] {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver().machines.size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return device_entry("cuDeviceGet", ordinal, [&](Machine&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return device_entry("cuDeviceGetName", device, [&](Machine&) {
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(name, static_cast<std::size_t>(length), "fragshim stand-in");
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return device_entry("cuDeviceGetPCIBusId", device, [&](Machine& machine) {
    if (text == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", machine.ordinal + 1);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* size, CUdevice device) {
  return device_entry("cuDeviceTotalMem_v2", device, [&](Machine& machine) {
    if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *size = machine.device.capacity();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return device_entry("cuDeviceGetAttribute", device, [&](Machine& machine) {
    if (value == nullptr || attribute <= 0) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute_value(machine, attribute);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return device_entry("cuDeviceGetUuid", device, [&](Machine& machine) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    fill_uuid(uuid, machine.ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid(uuid, device);
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return device_entry("cuDeviceCanAccessPeer", device, [&](Machine&) {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (machine_of(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *can = device == peer ? 0 : 1;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
