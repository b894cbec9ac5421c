// GPUs without virtual memory management, drivers without stream-ordered memory: what cannot be
// served is the driver's, the rest is served.
#include <dlfcn.h>

#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

TEST_CASE("without virtual memory the stream-ordered door is the driver's", "[fallback]") {
  const Primary context;
  const Stream stream;
  const std::uint64_t allocated = driver_calls("cuMemAllocAsync");
  const std::uint64_t freed = driver_calls("cuMemFreeAsync");
  const std::uint64_t used = pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  const CUdeviceptr block = allocate_on(stream, 1 * MiB);
  CHECK(driver_calls("cuMemAllocAsync") == allocated + 1);
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == used + 1 * MiB);
  touch(block, 1 * MiB, stream);
  release_on(stream, block);
  CHECK(driver_calls("cuMemFreeAsync") == freed + 1);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == used);
  for (const char* name : {"cuMemAddressReserve", "cuMemCreate", "cuMemMap"}) {
    INFO(name);
    CHECK(driver_calls(name) == 0);
  }
}

TEST_CASE("without virtual memory cudaMalloc is served from segments, whatever the policy",
          "[fallback]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr one = allocate(1 * MiB);
  const CUdeviceptr two = allocate(1 * MiB);
  CHECK(share_segment(one, two));
  const CUdeviceptr ordered = allocate_on(stream, 1 * MiB);
  CHECK(cuMemFree(ordered) == CUDA_SUCCESS);
  CHECK(cuMemFree(ordered) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFreeAsync(one, stream) == CUDA_SUCCESS);
  release(two);
}

TEST_CASE("a GPU that says it has virtual memory and has none leaves the door to the driver",
          "[refused]") {
  const Primary context;
  const Stream stream;
  const std::uint64_t allocated = driver_calls("cuMemAllocAsync");
  const CUdeviceptr one = allocate_on(stream, 1 * MiB);
  const CUdeviceptr two = allocate_on(stream, 1 * MiB);
  CHECK(driver_calls("cuMemAddressReserve") > 0);
  CHECK(driver_calls("cuMemAllocAsync") == allocated + 2);
  touch(one, 1 * MiB, stream);
  release_on(stream, one);
  CHECK(cuMemFree(two) == CUDA_SUCCESS);
  CHECK(cuMemFree(two) == CUDA_ERROR_INVALID_VALUE);
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
}

TEST_CASE("what a driver before CUDA 11.2 lacks is found nowhere in it, and fails if it is called",
          "[oldest][dlsym]") {
  int version = 0;
  REQUIRE(cuDriverGetVersion(&version) == CUDA_SUCCESS);
  REQUIRE(version == 11000);
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY);
  CHECK(dlsym(library, "cuMemAlloc_v2") == reinterpret_cast<void*>(&cuMemAlloc));  // as linked
  for (const char* name :
       {"cuMemAllocAsync", "cuMemAllocAsync_ptsz", "cuMemFreeAsync", "cuMemFreeAsync_ptsz",
        "cuMemAllocFromPoolAsync", "cuMemPoolTrimTo", "cuMemPoolGetAttribute", "cuDeviceSetMemPool",
        "cuGetProcAddress", "cuGetProcAddress_v2"}) {
    INFO(name);
    CHECK(dlsym(library, name) == nullptr);
    CHECK(dlerror() != nullptr);
  }
  const Primary context;
  CUdeviceptr address = 0;
  CHECK(cuMemAllocAsync(&address, 512, nullptr) == CUDA_ERROR_NOT_FOUND);
  const CUdeviceptr block = allocate(512);
  CHECK(cuMemFreeAsync(block, nullptr) == CUDA_ERROR_NOT_FOUND);
  release(block);  // it is still there
}
