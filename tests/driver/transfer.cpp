// Copies and fills, in the order of streams.
#include "tests/driver/transfer.hpp"

#include <algorithm>
#include <cstring>

#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"
#include "tests/driver/pools.hpp"

namespace standin {

using fragshim::Access;

CUresult add_touch(const Stream& stream, Address address, Bytes size, Access access, Work* work) {
  Machine* machine = machine_at(address);
  if (machine == nullptr || size == 0) return CUDA_SUCCESS;
  {
    const Lock lock(driver().mutex);
    const auto allocation = allocation_of(address);
    if (allocation != driver().allocations.end()) {
      const Bytes reach = allocation->second.size - (address - allocation->first);
      if (size > reach) return CUDA_ERROR_INVALID_VALUE;
      if (allocation->second.kind == MemoryKind::imported) return CUDA_SUCCESS;
    } else if (in_a_pool(address)) {
      return CUDA_ERROR_INVALID_VALUE;  // a block that is free
    }
    if (lacks_access(address, size)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  std::vector<fragshim::Touch> touches;
  if (!machine->device.touches(address, size, access, &touches)) return CUDA_ERROR_INVALID_VALUE;
  // Another device's memory has another order, of which this stream is no part.
  if (machine == stream.context->machine) {
    work->touches.insert(work->touches.end(), touches.begin(), touches.end());
  }
  return CUDA_SUCCESS;
}

bool still_there(Machine& machine, std::uint64_t stream,
                 const std::vector<fragshim::Touch>& touches) {
  for (const fragshim::Touch& touch : touches) {
    const auto location = machine.device.mapped_physical(touch.address);
    if (location && location->physical == touch.physical && location->size >= touch.size) continue;
    machine.order().expose("memory is gone", stream, touch.address, touch.size);
    return false;
  }
  return true;
}

namespace {

template <class Value>
CUresult fill(Stream& stream, CUdeviceptr address, Value value, size_t count, bool wait = false) {
  Work work;
  const Bytes size = count * sizeof(Value);
  if (machine_at(address) == nullptr || address % sizeof(Value) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult verdict = add_touch(stream, address, size, Access::write, &work);
  if (verdict != CUDA_SUCCESS) return verdict;
  set_body(stream, &work, [address, value, count] {
    std::fill_n(reinterpret_cast<Value*>(address), count, Value{value});
  });
  return wait ? submit_and_wait(stream, std::move(work)) : submit(stream, std::move(work));
}

bool is_pageable(Address address) {
  if (machine_at(address) != nullptr) return false;
  const Lock lock(driver().mutex);
  return allocation_of(address) == driver().allocations.end();
}

const char* bytes_at(Address address) { return reinterpret_cast<const char*>(address); }

/// Pageable host memory is read at the call, and written before it returns; all else is touched
/// when the stream comes to it.
CUresult copy(Stream& stream, Address to, Address from, size_t size, bool wait) {
  if (size == 0) return CUDA_SUCCESS;
  Work work;
  CUresult verdict = add_touch(stream, to, size, Access::write, &work);
  if (verdict == CUDA_SUCCESS) verdict = add_touch(stream, from, size, Access::read, &work);
  if (verdict != CUDA_SUCCESS) return verdict;
  if (!wait && is_pageable(from)) {
    set_body(stream, &work,
             [to, staged = std::vector<char>(bytes_at(from), bytes_at(from) + size)] {
               std::memcpy(reinterpret_cast<char*>(to), staged.data(), staged.size());
             });
  } else {
    set_body(stream, &work,
             [to, from, size] { std::memmove(reinterpret_cast<char*>(to), bytes_at(from), size); });
  }
  if (wait || (is_pageable(to) && !stream.capture)) return submit_and_wait(stream, std::move(work));
  return submit(stream, std::move(work));
}

Address host(const void* pointer) { return reinterpret_cast<Address>(pointer); }

CUresult run_on_host(Stream& stream, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.run = [function, data] { function(data); };
  return submit(stream, std::move(work));
}

}  // namespace
}  // namespace standin

using namespace standin;

STANDIN_DEFAULT_STREAM_ENTRY(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count),
                             return fill(on, to, value, count);)
STANDIN_DEFAULT_STREAM_ENTRY(cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, size_t count),
                             return fill(on, to, value, count);)
STANDIN_DEFAULT_STREAM_ENTRY(cuMemsetD32_v2, (CUdeviceptr to, unsigned int value, size_t count),
                             return fill(on, to, value, count);)
STANDIN_STREAM_ENTRY(cuMemsetD8Async, _ptsz,
                     (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
                     return fill(on, to, value, count);)
STANDIN_STREAM_ENTRY(cuMemsetD16Async, _ptsz,
                     (CUdeviceptr to, unsigned short value, size_t count, CUstream stream),
                     return fill(on, to, value, count);)
STANDIN_STREAM_ENTRY(cuMemsetD32Async, _ptsz,
                     (CUdeviceptr to, unsigned int value, size_t count, CUstream stream),
                     return fill(on, to, value, count);)

STANDIN_DEFAULT_STREAM_ENTRY(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size),
                             return copy(on, to, from, size, true);)
STANDIN_DEFAULT_STREAM_ENTRY(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t size),
                             return copy(on, to, host(from), size, true);)
STANDIN_DEFAULT_STREAM_ENTRY(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t size),
                             return copy(on, host(to), from, size, true);)
STANDIN_DEFAULT_STREAM_ENTRY(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size),
                             return copy(on, to, from, size, true);)
STANDIN_STREAM_ENTRY(cuMemcpyAsync, _ptsz,
                     (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),
                     return copy(on, to, from, size, false);)
STANDIN_STREAM_ENTRY(cuMemcpyHtoDAsync_v2, _ptsz,
                     (CUdeviceptr to, const void* from, size_t size, CUstream stream),
                     return copy(on, to, host(from), size, false);)
STANDIN_STREAM_ENTRY(cuMemcpyDtoHAsync_v2, _ptsz,
                     (void* to, CUdeviceptr from, size_t size, CUstream stream),
                     return copy(on, host(to), from, size, false);)
STANDIN_STREAM_ENTRY(cuMemcpyDtoDAsync_v2, _ptsz,
                     (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),
                     return copy(on, to, from, size, false);)
STANDIN_STREAM_ENTRY(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void* data),
                     return run_on_host(on, function, data);)
