// cuMemAllocAsync, cuMemAllocFromPoolAsync, cuMemFreeAsync, each with _ptsz.
#include <limits>
#include <thread>

#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

namespace {

std::uint64_t used() { return pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }

}  // namespace

TEST_CASE("a block freed on a stream is at once good for that stream", "[serve]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr first = allocate_on(stream, 3 * MiB);
  touch(first, 3 * MiB, stream);
  release_on(stream, first);
  const CUdeviceptr second = allocate_on(stream, 3 * MiB);
  touch(second, 3 * MiB, stream);
  CHECK(first == second);
  release_on(stream, second);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}

TEST_CASE("blocks change streams only behind the work of the stream they leave", "[serve]") {
  const Primary context;
  const Stream one;
  const Stream two;
  for (int round = 0; round < 60; ++round) {
    const CUdeviceptr block = allocate_on(one, 5 * MiB);
    touch(block, 5 * MiB, one);
    release_on(one, block);
    const CUdeviceptr next = allocate_on(two, 5 * MiB);
    touch(next, 5 * MiB, two);
    release_on(two, next);
    if (round % 20 == 0) REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}

TEST_CASE("a free on another stream than the allocation's is ordered by that stream", "[serve]") {
  const Primary context;
  const Stream working;
  const Stream unifying;
  CUevent event = nullptr;
  REQUIRE(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  for (int round = 0; round < 100; ++round) {
    const CUdeviceptr block = allocate_on(working, 2 * MiB);
    touch(block, 2 * MiB, working);
    REQUIRE(cuEventRecord(event, working) == CUDA_SUCCESS);
    REQUIRE(cuStreamWaitEvent(unifying, event, 0) == CUDA_SUCCESS);
    touch(block, 2 * MiB, unifying);
    release_on(unifying, block);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) <= 400 * MiB);
  CHECK(cuEventDestroy(event) == CUDA_SUCCESS);
}

TEST_CASE("all names of the default streams are served", "[serve][watch]") {
  const Primary context;
  CUdeviceptr block = 0;
  for (const CUstream stream : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    REQUIRE(cuMemAllocAsync(&block, 4096, stream) == CUDA_SUCCESS);
    touch(block, 4096, stream);
    REQUIRE(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemAllocAsync_ptsz(&block, 4096, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync_ptsz(block, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemAllocFromPoolAsync_ptsz(&block, 4096, default_pool(), stream) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync_ptsz(block, stream) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}

TEST_CASE("the per-thread default stream of one thread is not another's", "[serve]") {
  const Primary context;
  for (int round = 0; round < 20; ++round) {
    std::thread([&] {
      REQUIRE(cuCtxSetCurrent(context.get()) == CUDA_SUCCESS);
      CUdeviceptr block = 0;
      REQUIRE(cuMemAllocAsync_ptsz(&block, 6 * MiB, nullptr) == CUDA_SUCCESS);
      REQUIRE(cuMemsetD8Async_ptsz(block, 1, 6 * MiB, nullptr) == CUDA_SUCCESS);
      REQUIRE(cuMemFreeAsync_ptsz(block, nullptr) == CUDA_SUCCESS);
    }).join();  // the thread is gone, its freed block is not
    CUdeviceptr block = 0;
    REQUIRE(cuMemAllocAsync_ptsz(&block, 6 * MiB, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD8Async_ptsz(block, 1, 6 * MiB, nullptr) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync_ptsz(block, nullptr) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}

TEST_CASE("stream-ordered requests that the driver refuses are refused", "[serve][watch]") {
  const Primary context;
  const Stream stream;
  CUdeviceptr block = 0;
  CHECK(cuMemAllocAsync(nullptr, 512, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocAsync(&block, std::numeric_limits<std::size_t>::max(), stream) ==
        CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemFreeAsync(0x1234567, stream) == CUDA_ERROR_INVALID_VALUE);
  block = allocate_on(stream, 1 * MiB);
  CHECK(cuMemFreeAsync(block + 512, stream) == CUDA_ERROR_INVALID_VALUE);
  release_on(stream, block);
  CHECK(cuMemFreeAsync(block, stream) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("memory of the synchronous door is freed here as the block it is", "[serve]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr base = allocate(4096);
  const CUdeviceptr neighbour = allocate(4096);
  REQUIRE(share_segment(base, neighbour));
  release_on(stream, base);  // not the segment, in which the neighbour lives
  touch(neighbour, 4096, stream);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync(base, stream) == CUDA_ERROR_INVALID_VALUE);
  release(neighbour);
}

TEST_CASE("only the default pool is served", "[serve]") {
  const Primary context;
  const Stream stream;
  const std::uint64_t before = used();
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  REQUIRE(cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
  CUdeviceptr block = 0;
  REQUIRE(cuMemAllocFromPoolAsync(&block, 1 * MiB, pool, stream) == CUDA_SUCCESS);
  CHECK(used() == before);
  CHECK(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);

  REQUIRE(cuMemAllocFromPoolAsync(&block, 1 * MiB, default_pool(), stream) == CUDA_SUCCESS);
  CHECK(used() == before + 1 * MiB);
  release_on(stream, block);

  REQUIRE(cuDeviceSetMemPool(0, pool) == CUDA_SUCCESS);  // now the current one
  block = allocate_on(stream, 1 * MiB);
  CHECK(used() == before);
  release_on(stream, block);
  REQUIRE(cuDeviceSetMemPool(0, default_pool()) == CUDA_SUCCESS);
  block = allocate_on(stream, 1 * MiB);
  CHECK(used() == before + 1 * MiB);
  release_on(stream, block);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
}

TEST_CASE("the current pool by its newest name", "[newest]") {
  const Primary context;
  const Stream stream;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  REQUIRE(cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
  const std::uint64_t before = used();
  for (const CUmemoryPool current : {pool, default_pool()}) {
    REQUIRE(cuMemSetMemPool(&properties.location, properties.allocType, current) == CUDA_SUCCESS);
    const CUdeviceptr block = allocate_on(stream, 1 * MiB);
    CHECK(used() == before + (current == pool ? 0 : 1 * MiB));
    release_on(stream, block);
  }
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
}

TEST_CASE("a stream that is destroyed leaves its blocks behind for others", "[serve][unlimited]") {
  const Primary context;
  for (int round = 0; round < 30; ++round) {
    Stream stream;
    const CUdeviceptr block = allocate_on(stream, 8 * MiB);
    touch(block, 8 * MiB, stream);
    release_on(stream, block);
    REQUIRE(cuStreamDestroy(stream.release()) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  // All their work is done: what they have left serves any stream, and nothing is lost.
  const std::uint64_t reserved = pool_statistic(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  CHECK(reserved <= 300 * MiB);
  const Stream stream;
  std::vector<CUdeviceptr> blocks;
  for (Bytes taken = 0; taken + 8 * MiB <= reserved; taken += 8 * MiB) {
    blocks.push_back(allocate_on(stream, 8 * MiB));
  }
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == reserved);
  for (const CUdeviceptr block : blocks) release_on(stream, block);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}

TEST_CASE("a stream-ordered request for nothing, or without a context, gets the driver's answer",
          "[serve][watch]") {
  const Primary context;
  CUdeviceptr address = 7;
  CHECK(cuMemAllocAsync(&address, 0, nullptr) == CUDA_SUCCESS);
  CHECK(address == 0);
  CHECK(cuMemFreeAsync(address, nullptr) == CUDA_SUCCESS);
  CUresult got = CUDA_SUCCESS;
  std::thread([&] { got = cuMemAllocAsync(&address, 512, nullptr); }).join();
  CHECK(got == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(address == 0);
}
