#include "shim/cuda_memory.hpp"

#include <algorithm>
#include <new>

#include "shim/driver.hpp"

namespace fragshim {
namespace {

bool has(CUdevice device, CUdevice_attribute attribute) noexcept {
  int value = 0;
  return driver()->cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

/// Inserts into a table of what is held from the driver; false where the host has no memory.
template <class Table, class Key, class Value>
bool note(std::mutex& mutex, Table& table, Key key, Value value) noexcept {
  const std::lock_guard lock(mutex);
  try {
    table.insert_or_assign(key, value);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

template <class Table, class Key>
void forget(std::mutex& mutex, Table& table, Key key) noexcept {
  const std::lock_guard lock(mutex);
  table.erase(key);
}

// One call at a time: with memory mapped at several addresses and several threads at work, the
// driver was seen to free a record of its own twice in cuMemUnmap and to abort the program. Nothing
// in it comes back to us from these calls and no other lock is taken under this one, so it may be
// held across them.
constinit std::mutex one_at_a_time;

template <class... Parameters, class... Arguments>
CUresult in_turn(CUresult(CUDAAPI* entry)(Parameters...), Arguments... arguments) noexcept {
  const std::lock_guard lock(one_at_a_time);
  return entry(arguments...);
}

}  // namespace

void PeerAccess::set_one(const CUmemAccessDesc& access) noexcept {
  const auto end = list_.entries.begin() + static_cast<std::ptrdiff_t>(list_.size);
  const auto found = std::find_if(list_.entries.begin(), end, [&](const CUmemAccessDesc& entry) {
    return entry.location.type == access.location.type && entry.location.id == access.location.id;
  });
  if (access.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
    if (found != end) *found = list_.entries[--list_.size];
  } else if (found != end) {
    *found = access;
  } else if (list_.size < max_peers) {
    list_.entries[list_.size++] = access;
  }
}

void PeerAccess::set(const CUmemAccessDesc* access, std::size_t count) noexcept {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < count; ++i) set_one(access[i]);
  list_.version = version_.fetch_add(1, std::memory_order_release) + 1;
}

PeerAccess::List PeerAccess::list() const noexcept {
  const std::lock_guard lock(mutex_);
  return list_;
}

CudaMemory::CudaMemory(CUdevice device, const PeerAccess& peers) noexcept : peers_(peers) {
  const Driver& real = *driver();
  if (!real.cuMemAddressReserve || !real.cuMemMap || !real.cuMemSetAccess ||
      !has(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
    return;
  }
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties_.location.id = device;
  properties_.allocFlags.gpuDirectRDMACapable =
      has(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  std::size_t unit = 0;
  if (real.cuMemGetAllocationGranularity(&unit, &properties_,
                                         CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) == CUDA_SUCCESS) {
    granularity_ = unit;
  }
}

CUresult CudaMemory::reserve(Bytes size, Address* out) noexcept {
  CUdeviceptr address = 0;
  const CUresult result = driver()->cuMemAddressReserve(&address, size, granularity_, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  if (!note(mutex_, ranges_, Address{address}, size)) {
    driver()->cuMemAddressFree(address, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = address;
  return CUDA_SUCCESS;
}

CUresult CudaMemory::unreserve(Address address, Bytes size) noexcept {
  forget(mutex_, ranges_, address);
  return driver()->cuMemAddressFree(address, size);
}

CUresult CudaMemory::create(Bytes size, Physical* out) noexcept {
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = in_turn(driver()->cuMemCreate, &handle, size, &properties_, 0);
  if (result != CUDA_SUCCESS) return result;
  if (!note(mutex_, physical_, std::uint64_t{handle}, size)) {
    in_turn(driver()->cuMemRelease, handle);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  out->handle = handle;
  return CUDA_SUCCESS;
}

CUresult CudaMemory::destroy(Physical memory) noexcept {
  forget(mutex_, physical_, memory.handle);
  return in_turn(driver()->cuMemRelease, memory.handle);
}

CUresult CudaMemory::map(Address address, Bytes size, Physical memory) noexcept {
  if (!note(mutex_, mappings_, address, Mapping{size, false})) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = in_turn(driver()->cuMemMap, address, size, 0, memory.handle, 0);
  if (result == CUDA_SUCCESS) {
    result = give_access(address, size);
    if (result != CUDA_SUCCESS) in_turn(driver()->cuMemUnmap, address, size);
  }
  if (result != CUDA_SUCCESS) forget(mutex_, mappings_, address);
  return result;
}

CUresult CudaMemory::unmap(Address address, Bytes size) noexcept {
  forget(mutex_, mappings_, address);
  return in_turn(driver()->cuMemUnmap, address, size);
}

// Access may change while a mapping is being made: it then is not in the list that apply_access
// works through, and is given access anew here.
CUresult CudaMemory::give_access(Address address, Bytes size) noexcept {
  for (;;) {
    PeerAccess::List access = peers_.list();
    access.entries[access.size++] = {properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUresult result =
        in_turn(driver()->cuMemSetAccess, address, size, access.entries.data(), access.size);
    if (result != CUDA_SUCCESS) return result;
    const std::lock_guard lock(mutex_);
    if (access.version != peers_.version()) continue;
    const auto found = mappings_.find(address);
    if (found != mappings_.end()) found->second.ready = true;
    return CUDA_SUCCESS;
  }
}

std::vector<std::pair<Address, Bytes>> CudaMemory::ready_mappings() const {
  std::vector<std::pair<Address, Bytes>> ready;
  const std::lock_guard lock(mutex_);
  ready.reserve(mappings_.size());
  for (const auto& [address, mapping] : mappings_) {
    if (mapping.ready) ready.emplace_back(address, mapping.size);
  }
  return ready;
}

bool CudaMemory::is_mapped(Address address) const noexcept {
  const std::lock_guard lock(mutex_);
  return mappings_.count(address) != 0;
}

CUresult CudaMemory::apply_access(const CUmemAccessDesc* access, std::size_t count) noexcept {
  CUresult first = CUDA_SUCCESS;
  try {
    for (const auto& [address, size] : ready_mappings()) {
      const CUresult result = in_turn(driver()->cuMemSetAccess, address, size, access, count);
      const bool counts = result != CUDA_SUCCESS && is_mapped(address);  // else unmapped meanwhile
      if (counts && first == CUDA_SUCCESS) first = result;
    }
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return first;
}

void CudaMemory::release_all() noexcept {
  std::map<Address, Bytes> ranges;
  std::map<std::uint64_t, Bytes> physical;
  std::map<Address, Mapping> mappings;
  {
    const std::lock_guard lock(mutex_);
    ranges.swap(ranges_);
    physical.swap(physical_);
    mappings.swap(mappings_);
  }
  const Driver& real = *driver();
  for (const auto& [address, mapping] : mappings) in_turn(real.cuMemUnmap, address, mapping.size);
  for (const auto& [handle, size] : physical) in_turn(real.cuMemRelease, handle);
  for (const auto& [address, size] : ranges) real.cuMemAddressFree(address, size);
}

}  // namespace fragshim
