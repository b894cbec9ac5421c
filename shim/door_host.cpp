// Managed and pinned host memory: the driver's, but counted.
#include <cstddef>
#include <new>

#include "shim/context.hpp"
#include "shim/hooks.hpp"

namespace fragshim {
namespace {

void note_host(CUresult result, void* const* out, std::size_t size) noexcept {
  if (result != CUDA_SUCCESS || size == 0) return;
  host_memory().add(reinterpret_cast<Address>(*out), size, legacy_stream);
}

}  // namespace

// Never destroyed: the program's last destructors may still free.

Ledger& managed_memory() noexcept {
  alignas(Ledger) static std::byte place[sizeof(Ledger)];
  static Ledger& ledger = *new (place) Ledger;
  return ledger;
}

Ledger& host_memory() noexcept {
  alignas(Ledger) static std::byte place[sizeof(Ledger)];
  static Ledger& ledger = *new (place) Ledger;
  return ledger;
}

}  // namespace fragshim

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* out, size_t size,
                                                   unsigned int flags) {
  FRAGSHIM_ENTER(cuMemAllocManaged, out, size, flags);
  const CUresult result = real->cuMemAllocManaged(out, size, flags);
  if (result == CUDA_SUCCESS) managed_memory().add(*out, size, legacy_stream);
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemAllocHost_v2(void** out, size_t size) {
  FRAGSHIM_ENTER(cuMemAllocHost_v2, out, size);
  const CUresult result = real->cuMemAllocHost_v2(out, size);
  note_host(result, out, size);
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemHostAlloc(void** out, size_t size, unsigned int flags) {
  FRAGSHIM_ENTER(cuMemHostAlloc, out, size, flags);
  const CUresult result = real->cuMemHostAlloc(out, size, flags);
  note_host(result, out, size);
  return result;
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuMemFreeHost(void* host) {
  FRAGSHIM_ENTER(cuMemFreeHost, host);
  const auto address = reinterpret_cast<Address>(host);
  Ledger::Entry entry;
  const bool listed = host_memory().remove(address, &entry);
  const CUresult result = real->cuMemFreeHost(host);
  if (listed && result != CUDA_SUCCESS) host_memory().restore(address, entry);
  return result;
}
