#include "shim/cuda_device.hpp"

#include <cstdio>

#include "shim/capture.hpp"
#include "shim/context_stream.hpp"
#include "shim/cuda_status.hpp"
#include "shim/driver.hpp"
#include "shim/log.hpp"

namespace fragshim {
namespace {

constexpr Status gone_status{Outcome::failed, CUDA_ERROR_CONTEXT_IS_DESTROYED};

/// The heap does with other memory, and the user should know why there is less to move.
void warn_of_mapping(int error) noexcept {
  char line[128];
  std::snprintf(line, sizeof line,
                "the driver refused to map memory that it has given (CUDA error %d): it is left "
                "where it is",
                error);
  log::warning("mapping", line);
}

}  // namespace

/// Makes `call` with the context current.
template <class Call>
CUresult CudaDevice::within(Call call) const noexcept {
  const Driver& real = *driver();
  CUcontext now = nullptr;
  real.cuCtxGetCurrent(&now);
  if (now == context_) return call();
  const CUresult pushed = real.cuCtxPushCurrent_v2(context_);
  if (pushed != CUDA_SUCCESS) return pushed;
  const CUresult result = call();
  real.cuCtxPopCurrent_v2(&now);
  return result;
}

/// Makes `call`, whose arguments say which context is meant; some drivers want one current anyway.
template <class Call>
CUresult CudaDevice::by_handle(Call call) const noexcept {
  const CUresult result = call();
  return result == CUDA_ERROR_INVALID_CONTEXT ? within(call) : result;
}

/// A call that takes memory or addresses from the driver.
template <class Call>
Status CudaDevice::take(Call call) const noexcept {
  if (gone()) return gone_status;
  const capture::Relaxed relaxed;
  return status_of(by_handle(call));
}

/// A call that gives some back.
template <class Call>
Status CudaDevice::give(Call call) const noexcept {
  if (gone()) return {};
  const capture::Relaxed relaxed;
  return status_of_release(by_handle(call));
}

Status CudaDevice::allocate_segment(Bytes size, Address* out) noexcept {
  CUdeviceptr address = 0;
  const Status status =
      take([&] { return within([&] { return driver()->cuMemAlloc_v2(&address, size); }); });
  *out = address;
  return status;
}

Status CudaDevice::release_segment(Address address, Bytes) noexcept {
  return give([&] { return within([&] { return driver()->cuMemFree_v2(address); }); });
}

Status CudaDevice::reserve(Bytes size, Address* out) noexcept {
  return take([&] { return memory_.reserve(size, out); });
}

Status CudaDevice::unreserve(Address address, Bytes size) noexcept {
  return give([&] { return memory_.unreserve(address, size); });
}

Status CudaDevice::create(Bytes size, Physical* out) noexcept {
  return take([&] { return memory_.create(size, out); });
}

Status CudaDevice::destroy(Physical memory, Bytes) noexcept {
  return give([&] { return memory_.destroy(memory); });
}

Status CudaDevice::map(Address address, Bytes size, Physical memory) noexcept {
  const Status status = take([&] { return memory_.map(address, size, memory); });
  if (status.outcome == Outcome::failed && !gone()) warn_of_mapping(status.code);
  return status;
}

Status CudaDevice::unmap(Address address, Bytes size) noexcept {
  return give([&] { return memory_.unmap(address, size); });
}

bool CudaDevice::has_context_fences() const noexcept {
  return driver()->cuCtxRecordEvent != nullptr;
}

Status CudaDevice::record(StreamId stream, Fence* out) noexcept {
  const Driver& real = *driver();
  if (gone()) return gone_status;
  const CUstream handle = stream == all_streams ? nullptr : handle_of(stream);
  if (handle == nullptr && !real.cuCtxRecordEvent) return {Outcome::unsupported};
  const capture::Gate gate;
  if (!gate) return {Outcome::unsupported};
  CUresult result = CUDA_SUCCESS;
  Fence fence = fences_.take_recycled();
  if (!fence) {
    result = within([&] {
      fence = fences_.take(&result);
      return result;
    });
    if (!fence) return status_of(result);
  }
  const CUevent event = FencePool::event(fence);
  if (handle == nullptr) {
    result = by_handle([&] { return real.cuCtxRecordEvent(context_, event); });
  } else if (stream == legacy_stream || handle == CU_STREAM_PER_THREAD) {
    result = within([&] { return real.cuEventRecord(event, handle); });
  } else {
    result = by_handle([&] { return real.cuEventRecord(event, handle); });
  }
  if (result == CUDA_SUCCESS) {
    *out = fence;
  } else {
    fences_.give(fence);
  }
  return status_of(result);
}

Status CudaDevice::query(Fence fence) noexcept {
  if (gone()) return {};
  const capture::Gate gate;
  if (!gate) return {Outcome::not_ready};
  return status_of_release(
      by_handle([&] { return driver()->cuEventQuery(FencePool::event(fence)); }));
}

Status CudaDevice::wait(Fence fence) noexcept {
  if (gone()) return {};
  if (capture::underway()) return {Outcome::unsupported};
  return status_of_release(
      by_handle([&] { return driver()->cuEventSynchronize(FencePool::event(fence)); }));
}

Status CudaDevice::stream_wait(StreamId stream, Fence fence) noexcept {
  if (stream == all_streams) return wait(fence);
  if (gone()) return {};
  const CUstream handle = handle_of(stream);
  if (handle == nullptr) return {Outcome::unsupported};
  const capture::Gate gate;
  if (!gate) return {Outcome::unsupported};
  const auto call = [&] { return driver()->cuStreamWaitEvent(handle, FencePool::event(fence), 0); };
  const bool current_counts = handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  return status_of(current_counts ? within(call) : by_handle(call));
}

Status CudaDevice::synchronize() noexcept {
  if (gone()) return {};
  if (capture::underway()) return {Outcome::unsupported};
  return status_of_release(within([] { return driver()->cuCtxSynchronize(); }));
}

Status CudaDevice::memory_info(Bytes* free, Bytes* total) noexcept {
  if (gone()) return gone_status;
  std::size_t free_now = 0;
  std::size_t all = 0;
  const capture::Relaxed relaxed;
  const CUresult result = within([&] { return driver()->cuMemGetInfo_v2(&free_now, &all); });
  *free = free_now;
  *total = all;
  return status_of(result);
}

void CudaDevice::abandon() noexcept {
  if (!gone_.exchange(true, std::memory_order_acq_rel)) memory_.release_all();
}

}  // namespace fragshim
