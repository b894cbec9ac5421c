// What the tests of the doors share. They are one program of the driver API, as any user's, which
// runs preloaded on the stand-in driver or on a real one.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "tests/catch.hpp"

// Entries that the header renames or leaves out.
#undef cuCtxCreate
extern "C" {
CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t size, CUstream stream);
CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                              CUstream stream);
CUresult CUDAAPI cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count,
                                      CUstream stream);
CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph);
}

namespace fragshim::test {

/// The primary context of a GPU, current on this thread while the object lives.
class Primary {
 public:
  explicit Primary(CUdevice device = 0);
  ~Primary();
  Primary(const Primary&) = delete;
  Primary& operator=(const Primary&) = delete;
  CUcontext get() const { return context_; }

 private:
  CUdevice device_;
  CUcontext context_ = nullptr;
};

/// A stream that waits for none of the others; destroyed at the end unless released.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator CUstream() const { return stream_; }  // NOLINT: stands for its handle everywhere
  CUstream release();

 private:
  CUstream stream_ = nullptr;
};

/// Allocate and free, which must succeed.
CUdeviceptr allocate(std::size_t size);
void release(CUdeviceptr address);
CUdeviceptr allocate_on(CUstream stream, std::size_t size);
void release_on(CUstream stream, CUdeviceptr address);

/// Device work on `stream` that writes every byte of a block.
void touch(CUdeviceptr address, std::size_t size, CUstream stream);

/// The driver's answer to "in which of your allocations does this lie?"
struct Range {
  CUdeviceptr base = 0;
  std::size_t size = 0;
};
Range range_of(CUdeviceptr address);
CUdeviceptr segment_of(CUdeviceptr address);
bool share_segment(CUdeviceptr one, CUdeviceptr other);

CUmemoryPool default_pool(CUdevice device = 0);
std::uint64_t pool_statistic(CUmemPool_attribute attribute, CUdevice device = 0);
/// Sets a high mark back.
CUresult reset_statistic(CUmemPool_attribute attribute, CUdevice device = 0);

std::size_t free_memory();
std::size_t total_memory();

/// Work that found its memory handed out again too early, as the stand-in driver sees it; 0 on a
/// real driver, which does not look.
std::uint64_t hazards();

/// Calls of an entry that reached the stand-in driver so far, whoever made them.
std::uint64_t driver_calls(const char* name);

}  // namespace fragshim::test
