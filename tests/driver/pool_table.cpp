// The pools there are, and the driver's entries that make, ask and use them.
#include "tests/driver/pool_table.hpp"

#include <algorithm>

#include "tests/driver/call.hpp"

namespace standin {
namespace {

struct Table {
  std::vector<std::unique_ptr<Pool>> pools;
  std::map<int, Pool*> defaults;  // by device
  std::map<int, Pool*> current;
};

Table& table() {
  static Table& it = *new Table;
  return it;
}

CUmemoryPool handle_of(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

Pool* make_pool(Machine& machine) {
  const Lock lock(pool_mutex());
  auto& pools = table().pools;
  pools.push_back(std::make_unique<Pool>());
  pools.back()->machine = &machine;
  return pools.back().get();
}

CUresult create_pool(CUmemoryPool* out, const CUmemPoolProps* properties) {
  if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  Machine* machine = machine_of(properties->location.id);
  if (machine == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *out = handle_of(make_pool(*machine));
  return CUDA_SUCCESS;
}

/// A pool that goes while blocks of it live stays until they are freed; here, with its memory, for
/// good.
CUresult destroy_pool(CUmemoryPool handle) {
  Pool* pool = find_pool(handle);
  if (pool == nullptr || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  trim(*pool, 0);
  const Lock lock(pool_mutex());
  for (auto& [device, current] : table().current) {
    if (current == pool) current = table().defaults.at(device);
  }
  if (pool->used.now == 0 && pool->freed.empty()) {
    std::erase_if(table().pools, [pool](const auto& other) { return other.get() == pool; });
  }
  return CUDA_SUCCESS;
}

CUresult give(CUmemoryPool* out, Pool* pool) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(pool);
  return CUDA_SUCCESS;
}

CUresult default_pool(CUmemoryPool* out, CUdevice device) {
  if (machine_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return give(out, table().defaults.at(device));
}

CUresult get_pool(CUmemoryPool* out, CUdevice device) {
  Machine* machine = machine_of(device);
  return machine == nullptr ? CUDA_ERROR_INVALID_DEVICE : give(out, &current_pool(*machine));
}

CUresult set_pool(CUdevice device, CUmemoryPool handle) {
  Machine* machine = machine_of(device);
  Pool* pool = find_pool(handle);
  if (machine == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (pool == nullptr || pool->machine != machine) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(pool_mutex());
  table().current[device] = pool;
  return CUDA_SUCCESS;
}

/// The device of a location, for pinned memory; -1 for anything else.
CUdevice device_at(const CUmemLocation* location, CUmemAllocationType type) {
  const bool fits = location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                    type == CU_MEM_ALLOCATION_TYPE_PINNED;
  return fits ? location->id : -1;
}

CUresult get_attribute(Pool& pool, CUmemPool_attribute attribute, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(pool_mutex());
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (static_cast<int>(attribute)) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *bytes = pool.threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *bytes = pool.reserved.now;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *bytes = pool.reserved.high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = pool.used.now;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *bytes = pool.used.high;
      return CUDA_SUCCESS;
    default:
      break;
  }
  const auto found = pool.reuse.find(attribute);
  if (found == pool.reuse.end()) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(value) = found->second;
  return CUDA_SUCCESS;
}

CUresult set_attribute(Pool& pool, CUmemPool_attribute attribute, const void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(pool_mutex());
  const auto* bytes = static_cast<const cuuint64_t*>(value);
  const bool reserved = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool.threshold = *bytes;
    return CUDA_SUCCESS;
  }
  if (reserved || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    if (*bytes != 0) return CUDA_ERROR_INVALID_VALUE;
    Pool::Level& level = reserved ? pool.reserved : pool.used;
    level.high = level.now;
    return CUDA_SUCCESS;
  }
  const auto found = pool.reuse.find(attribute);
  if (found == pool.reuse.end()) return CUDA_ERROR_INVALID_VALUE;
  found->second = *static_cast<const int*>(value);
  return CUDA_SUCCESS;
}

CUresult set_access(Pool& pool, const CUmemAccessDesc* access, size_t count) {
  if (access == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (machine_of(access[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (access[i].location.id == pool.machine->ordinal &&
        access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      return CUDA_ERROR_INVALID_VALUE;  // its own device cannot be shut out
    }
  }
  const Lock lock(pool_mutex());
  for (size_t i = 0; i < count; ++i) pool.access[access[i].location.id] = access[i].flags;
  return CUDA_SUCCESS;
}

CUresult get_access(Pool& pool, const CUmemLocation* location, CUmemAccess_flags* flags) {
  if (flags == nullptr || location == nullptr || machine_of(location->id) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock(pool_mutex());
  const auto found = pool.access.find(location->id);
  *flags = location->id == pool.machine->ordinal ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : found == pool.access.end()          ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                                 : found->second;
  return CUDA_SUCCESS;
}

/// An entry about one pool.
template <class Body>
CUresult pool_entry(const char* name, CUmemoryPool handle, Body body) {
  return entry(name, [&] {
    Pool* pool = find_pool(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*pool);
  });
}

CUresult allocate_own(CUmemoryPool handle, Stream& stream, size_t size, CUdeviceptr* out) {
  Pool* pool = find_pool(handle);
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : allocate_from(*pool, stream, size, out);
}

}  // namespace

void make_default_pool(Machine& machine) {
  Pool* pool = make_pool(machine);
  pool->is_default = true;
  table().defaults[machine.ordinal] = table().current[machine.ordinal] = pool;
}

std::vector<Pool*> pools_of(const Machine& machine) {
  const Lock lock(pool_mutex());
  std::vector<Pool*> found;
  for (const auto& pool : table().pools) {
    if (pool->machine == &machine) found.push_back(pool.get());
  }
  return found;
}

Pool* find_pool(CUmemoryPool handle) {
  const Lock lock(pool_mutex());
  for (const auto& pool : table().pools) {
    if (handle_of(pool.get()) == handle) return pool.get();
  }
  return nullptr;
}

Pool& current_pool(const Machine& machine) {
  const Lock lock(pool_mutex());
  return *table().current.at(machine.ordinal);
}

bool in_a_pool(Address address) {
  const Lock lock(pool_mutex());
  return std::any_of(table().pools.begin(), table().pools.end(), [address](const auto& pool) {
    auto chunk = pool->chunks.upper_bound(address);
    if (chunk == pool->chunks.begin()) return false;
    --chunk;
    return address - chunk->first < chunk->second.size;
  });
}

}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  return entry("cuMemPoolCreate", [&] { return create_pool(out, properties); });
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool handle) {
  return entry("cuMemPoolDestroy", [&] { return destroy_pool(handle); });
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  return pool_entry("cuMemPoolTrimTo", handle, [&](Pool& pool) {
    trim(pool, keep);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute which,
                                       void* value) {
  return pool_entry("cuMemPoolGetAttribute", handle,
                    [&](Pool& pool) { return get_attribute(pool, which, value); });
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute which,
                                       void* value) {
  return pool_entry("cuMemPoolSetAttribute", handle,
                    [&](Pool& pool) { return set_attribute(pool, which, value); });
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access,
                                    size_t count) {
  return pool_entry("cuMemPoolSetAccess", handle,
                    [&](Pool& pool) { return set_access(pool, access, count); });
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                                    CUmemLocation* location) {
  return pool_entry("cuMemPoolGetAccess", handle,
                    [&](Pool& pool) { return get_access(pool, location, flags); });
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return entry("cuDeviceGetDefaultMemPool", [&] { return default_pool(out, device); });
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  return entry("cuDeviceGetMemPool", [&] { return get_pool(out, device); });
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  return entry("cuDeviceSetMemPool", [&] { return set_pool(device, handle); });
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                        CUmemAllocationType type) {
  return entry("cuMemGetDefaultMemPool",
               [&] { return default_pool(out, device_at(location, type)); });
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location,
                                 CUmemAllocationType type) {
  return entry("cuMemGetMemPool", [&] { return get_pool(out, device_at(location, type)); });
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                 CUmemoryPool handle) {
  return entry("cuMemSetMemPool", [&] { return set_pool(device_at(location, type), handle); });
}

}  // extern "C"

STANDIN_STREAM_ENTRY(cuMemAllocAsync, _ptsz, (CUdeviceptr * out, size_t size, CUstream stream),
                     return allocate_from(current_pool(*on.context->machine), on, size, out);)
STANDIN_STREAM_ENTRY(cuMemAllocFromPoolAsync, _ptsz,
                     (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream),
                     return allocate_own(pool, on, size, out);)
STANDIN_STREAM_ENTRY(cuMemFreeAsync, _ptsz, (CUdeviceptr address, CUstream stream),
                     return free_on(on, address);)
