#include "tests/preload/door_support.hpp"

#include <dlfcn.h>

namespace fragshim::test {

Primary::Primary(CUdevice device) : device_(device) {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&context_, device) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(context_) == CUDA_SUCCESS);
}

Primary::~Primary() {
  cuCtxSynchronize();
  cuCtxSetCurrent(nullptr);
  cuDevicePrimaryCtxRelease(device_);
  cuDevicePrimaryCtxReset(device_);  // whoever else holds it: the next test begins afresh
}

Stream::Stream() { REQUIRE(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS); }

Stream::~Stream() {
  if (stream_ != nullptr) cuStreamDestroy(stream_);
}

CUstream Stream::release() {
  const CUstream stream = stream_;
  stream_ = nullptr;
  return stream;
}

CUdeviceptr allocate(std::size_t size) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc(&address, size) == CUDA_SUCCESS);
  REQUIRE(address != 0);
  return address;
}

void release(CUdeviceptr address) { REQUIRE(cuMemFree(address) == CUDA_SUCCESS); }

CUdeviceptr allocate_on(CUstream stream, std::size_t size) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAllocAsync(&address, size, stream) == CUDA_SUCCESS);
  REQUIRE(address != 0);
  return address;
}

void release_on(CUstream stream, CUdeviceptr address) {
  REQUIRE(cuMemFreeAsync(address, stream) == CUDA_SUCCESS);
}

void touch(CUdeviceptr address, std::size_t size, CUstream stream) {
  REQUIRE(cuMemsetD8Async(address, 1, size, stream) == CUDA_SUCCESS);
}

Range range_of(CUdeviceptr address) {
  Range range;
  REQUIRE(cuMemGetAddressRange(&range.base, &range.size, address) == CUDA_SUCCESS);
  return range;
}

CUdeviceptr segment_of(CUdeviceptr address) { return range_of(address).base; }

bool share_segment(CUdeviceptr one, CUdeviceptr other) {
  return segment_of(one) == segment_of(other);
}

CUmemoryPool default_pool(CUdevice device) {
  CUmemoryPool pool = nullptr;
  REQUIRE(cuDeviceGetDefaultMemPool(&pool, device) == CUDA_SUCCESS);
  return pool;
}

std::uint64_t pool_statistic(CUmemPool_attribute attribute, CUdevice device) {
  cuuint64_t value = 0;
  REQUIRE(cuMemPoolGetAttribute(default_pool(device), attribute, &value) == CUDA_SUCCESS);
  return value;
}

CUresult reset_statistic(CUmemPool_attribute attribute, CUdevice device) {
  cuuint64_t zero = 0;
  return cuMemPoolSetAttribute(default_pool(device), attribute, &zero);
}

std::size_t free_memory() {
  std::size_t free = 0;
  REQUIRE(cuMemGetInfo(&free, nullptr) == CUDA_SUCCESS);
  return free;
}

std::size_t total_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE(cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  return total;
}

std::uint64_t hazards() {
  using Count = unsigned long long (*)();
  const auto count = reinterpret_cast<Count>(dlsym(RTLD_DEFAULT, "standin_hazards"));
  return count == nullptr ? 0 : count();
}

std::uint64_t driver_calls(const char* name) {
  using Calls = unsigned long long (*)(const char*);
  const auto calls = reinterpret_cast<Calls>(dlsym(RTLD_DEFAULT, "standin_calls"));
  return calls == nullptr ? 0 : calls(name);
}

}  // namespace fragshim::test
