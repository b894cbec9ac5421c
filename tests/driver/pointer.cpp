// What a pointer is, and memory shared with other processes and other devices of the machine.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/driver/call.hpp"
#include "tests/driver/context.hpp"

namespace standin {
namespace {

/// What is in a CUipcMemHandle: where the block's bytes lie in whose memory file.
struct Exported {
  char mark[8];
  int process;
  int file;
  int device;
  int reserved;
  Address physical;
  Bytes size;
};
static_assert(sizeof(Exported) <= sizeof(CUipcMemHandle));
constexpr char ipc_mark[8] = {'s', 't', 'a', 'n', 'd', 'i', 'n', 0};
constexpr Bytes page_size = 2 * fragshim::MiB;

/// The handle of the whole block that holds the address, as the real driver gives it.
CUresult export_block(CUipcMemHandle* out, CUdeviceptr address) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Machine* machine = machine_at(address);
  Exported block{};
  {
    const Lock lock(driver().mutex);
    const auto found = allocation_of(address);
    if (machine == nullptr || found == driver().allocations.end() ||
        found->second.kind != MemoryKind::plain) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    address = found->first;
    block.size = found->second.size;
  }
  std::memcpy(block.mark, ipc_mark, sizeof ipc_mark);
  block.process = getpid();
  block.file = machine->backing.file();
  block.device = machine->ordinal;
  block.physical = machine->device.mapped_physical(address)->physical;
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &block, sizeof block);
  return CUDA_SUCCESS;
}

/// Shows the pages of another process's memory file; false where that cannot be done.
bool show(const Exported& block, Address at, Bytes length) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", block.process, block.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  void* shown =
      mmap(reinterpret_cast<void*>(at), length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           file, static_cast<off_t>(fragshim::round_down(block.physical, page_size)));
  close(file);
  return shown != MAP_FAILED;
}

CUresult import_block(Context& context, CUdeviceptr* out, const CUipcMemHandle& handle) {
  Exported block;
  std::memcpy(&block, &handle, sizeof block);
  if (out == nullptr || std::memcmp(block.mark, ipc_mark, sizeof ipc_mark) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (block.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const Bytes before = block.physical % page_size;
  const Bytes length = fragshim::round_up(before + block.size, page_size);
  Machine& machine = *context.machine;
  Address at = 0;
  if (!machine.device.reserve(length, &at).ok()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!show(block, at, length)) {
    machine.device.unreserve(at, length);
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation allocation;
  allocation.kind = MemoryKind::imported;
  allocation.size = block.size;
  allocation.context = context.id;
  allocation.device = machine.ordinal;
  allocation.buffer_id = new_id();
  const Lock lock(driver().mutex);
  driver().allocations[at + before] = allocation;
  *out = at + before;
  return CUDA_SUCCESS;
}

CUresult close_import(CUdeviceptr address) {
  {
    const Lock lock(driver().mutex);
    const auto found = driver().allocations.find(address);
    if (found == driver().allocations.end() || found->second.kind != MemoryKind::imported) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return free_allocation(address);
}

/// All that is known of a pointer.
struct Pointer {
  bool known = false;
  bool host = false;
  bool mapped = false;  // by the program itself
  Address start = 0;
  Allocation allocation;
};

Pointer look_at(CUdeviceptr address) {
  Pointer pointer;
  {
    const Lock lock(driver().mutex);
    const auto found = allocation_of(address);
    if (found != driver().allocations.end()) {
      pointer.known = true;
      pointer.start = found->first;
      pointer.allocation = found->second;
      pointer.host = found->second.kind == MemoryKind::host;
      return pointer;
    }
  }
  Machine* machine = machine_at(address);
  const auto where = machine == nullptr ? std::nullopt : machine->device.mapped_physical(address);
  if (!where) return pointer;
  pointer.known = pointer.mapped = true;
  // Its range is all that was reserved there, while cuMemGetAddressRange tells of the mapping.
  const auto reserved = machine->device.reservation_of(address);
  pointer.start = reserved->address;
  pointer.allocation.size = reserved->size;
  pointer.allocation.device = machine->ordinal;
  pointer.allocation.buffer_id = where->handle;
  return pointer;
}

CUcontext context_with(std::uint64_t id) {
  const Lock lock(driver().mutex);
  for (const auto& context : driver().contexts) {
    if (context->live && context->id == id) return reinterpret_cast<CUcontext>(context.get());
  }
  return nullptr;
}

template <class Value>
CUresult put(void* data, Value value) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the value may be a pointer.
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult attribute_of(void* data, CUpointer_attribute attribute, CUdeviceptr address,
                      const Pointer& pointer) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!pointer.known) return CUDA_ERROR_INVALID_VALUE;
  const Allocation& allocation = pointer.allocation;
  const bool managed = allocation.kind == MemoryKind::managed;
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, context_with(allocation.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data,
                 static_cast<unsigned>(pointer.host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!pointer.host && !managed) return CUDA_ERROR_INVALID_VALUE;
      return put(data, address);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(data, static_cast<unsigned long long>(allocation.buffer_id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(data, managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(data, allocation.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(data, !pointer.mapped && allocation.kind == MemoryKind::plain);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(data, pointer.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(data, static_cast<size_t>(allocation.size));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(data, true);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, allocation.sync_memops);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(data, 0ull);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, reinterpret_cast<CUmemoryPool>(allocation.pool));
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// For a pointer it does not know, cuPointerGetAttributes answers zeroes.
CUresult attributes_of(unsigned count, const CUpointer_attribute* attributes, void** data,
                       CUdeviceptr address) {
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Pointer pointer = look_at(address);
  for (unsigned i = 0; i < count; ++i) {
    if (attribute_of(data[i], attributes[i], address, pointer) == CUDA_SUCCESS) continue;
    const bool ordinal = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    const bool narrow = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
                        attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED;
    if (data[i] != nullptr) std::memset(data[i], ordinal ? 0xFE : 0, narrow || ordinal ? 4 : 8);
  }
  return CUDA_SUCCESS;
}

CUresult set_attribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock(driver().mutex);
  const auto found = allocation_of(address);
  if (found == driver().allocations.end() || found->second.kind != MemoryKind::plain) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  found->second.sync_memops = *static_cast<const unsigned*>(value) != 0;
  return CUDA_SUCCESS;
}

/// A file descriptor, standing for the dma-buf that a real driver gives.
CUresult range_handle(void* out, CUdeviceptr address, size_t size) {
  Machine* machine = machine_at(address);
  std::vector<fragshim::Touch> parts;
  if (out == nullptr || size == 0 || machine == nullptr || address % 4096 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!machine->device.touches(address, size, fragshim::Access::read, &parts)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int file = fcntl(machine->backing.file(), F_DUPFD_CLOEXEC, 3);
  return file < 0 ? CUDA_ERROR_OPERATING_SYSTEM : put(out, file);
}

}  // namespace

CUresult release_imported(Machine& machine, Address address, Bytes) {
  const auto range = machine.device.reservation_of(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  hide(range->address, range->size);
  return result_of(machine.device.unreserve(range->address, range->size));
}

}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return context_entry("cuIpcGetMemHandle",
                       [&](Context&) { return export_block(handle, address); });
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int) {
  return context_entry("cuIpcOpenMemHandle",
                       [&](Context& context) { return import_block(context, out, handle); });
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int) {
  return context_entry("cuIpcOpenMemHandle_v2",
                       [&](Context& context) { return import_block(context, out, handle); });
}

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr address) {
  return context_entry("cuIpcCloseMemHandle", [&](Context&) { return close_import(address); });
}

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  return entry("cuPointerGetAttribute",
               [&] { return attribute_of(data, attribute, address, look_at(address)); });
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes,
                                        void** data, CUdeviceptr address) {
  return entry("cuPointerGetAttributes",
               [&] { return attributes_of(count, attributes, data, address); });
}

CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  return entry("cuPointerSetAttribute", [&] { return set_attribute(value, attribute, address); });
}

CUresult CUDAAPI cuMemGetHandleForAddressRange(void* out, CUdeviceptr address, size_t size,
                                               CUmemRangeHandleType, unsigned long long) {
  return context_entry("cuMemGetHandleForAddressRange",
                       [&](Context&) { return range_handle(out, address, size); });
}

}  // extern "C"
