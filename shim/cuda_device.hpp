// The Device on the CUDA driver: one context on one GPU.
#pragma once

#include <cuda.h>

#include <atomic>

#include "core/device/device.hpp"
#include "shim/cuda_fences.hpp"
#include "shim/cuda_memory.hpp"

namespace fragshim {

/// Makes the context current for a call only where the driver needs it and another one is current.
/// Streams are named as in context_stream.hpp. Status.code is the driver's result.
class CudaDevice final : public Device {
 public:
  /// `context` is current and on `device`; `peers` outlives this object.
  CudaDevice(CUcontext context, CUdevice device, const PeerAccess& peers) noexcept
      : context_(context), memory_(device, peers) {}

  Status allocate_segment(Bytes size, Address* out) noexcept override;
  Status release_segment(Address address, Bytes size) noexcept override;

  Bytes granularity() const noexcept override { return memory_.granularity(); }
  bool has_context_fences() const noexcept override;
  Status reserve(Bytes size, Address* out) noexcept override;
  Status unreserve(Address address, Bytes size) noexcept override;
  Status create(Bytes size, Physical* out) noexcept override;
  Status destroy(Physical memory, Bytes size) noexcept override;
  Status map(Address address, Bytes size, Physical memory) noexcept override;
  Status unmap(Address address, Bytes size) noexcept override;

  /// unsupported while a capture is underway anywhere in the process, and for all_streams on
  /// drivers before CUDA 12.5. The per-thread default stream of another thread cannot be named: its
  /// fence covers all streams.
  Status record(StreamId stream, Fence* out) noexcept override;
  /// not_ready while a capture is underway.
  Status query(Fence fence) noexcept override;
  /// unsupported while a capture is underway; synchronize() too.
  Status wait(Fence fence) noexcept override;
  Status stream_wait(StreamId stream, Fence fence) noexcept override;
  void retire(Fence fence) noexcept override { fences_.give(fence); }
  Status synchronize() noexcept override;

  Status memory_info(Bytes* free, Bytes* total) noexcept override;

  /// Gives peers access to every present mapping, or takes it away (PeerAccess: to later ones).
  CUresult apply_access(const CUmemAccessDesc* access, std::size_t count) noexcept {
    return gone() ? CUDA_SUCCESS : memory_.apply_access(access, count);
  }

  /// The context is gone, and its plain segments and events with it: releases the virtual memory.
  /// From now on nothing is given, every fence has passed and every release succeeds.
  void abandon() noexcept;

 private:
  bool gone() const noexcept { return gone_.load(std::memory_order_acquire); }
  template <class Call>
  CUresult within(Call call) const noexcept;
  template <class Call>
  CUresult by_handle(Call call) const noexcept;
  template <class Call>
  Status take(Call call) const noexcept;
  template <class Call>
  Status give(Call call) const noexcept;

  const CUcontext context_;
  std::atomic<bool> gone_{false};
  CudaMemory memory_;
  FencePool fences_;
};

}  // namespace fragshim
