// cuMemAlloc, cuMemAllocPitch, cuMemFree: what each call means.
#include <limits>
#include <set>
#include <thread>

#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

TEST_CASE("blocks are cut from segments of the driver's", "[serve][oldest][cut]") {
  const Primary context;
  const CUdeviceptr one = allocate(1000);
  const CUdeviceptr two = allocate(1000);
  CHECK(one != two);
  CHECK(one % 512 == 0);
  CHECK(two % 512 == 0);
  CHECK(share_segment(one, two));
  release(one);
  release(two);
}

TEST_CASE("large blocks fill pages of 64 KiB, as what is pinned for other devices has to",
          "[serve][segments]") {
  const Primary context;
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(allocate(1 * MiB + 512 * static_cast<std::size_t>(1 + 37 * i)));
    CHECK(blocks.back() % (64 * KiB) == 0);
  }
  CHECK(share_segment(blocks[0], blocks[1]));
  for (const CUdeviceptr block : blocks) release(block);
}

TEST_CASE("what the driver refuses is refused", "[serve][oldest][watch]") {
  const Primary context;
  CUdeviceptr address = 7;
  CHECK(cuMemAlloc(&address, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(nullptr, 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&address, std::numeric_limits<std::size_t>::max()) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&address, std::numeric_limits<std::size_t>::max() - 511) ==
        CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&address, std::size_t{1} << 50) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemFree(0) == CUDA_SUCCESS);
  release(allocate(512));  // nothing has broken
}

TEST_CASE("double, interior and unknown frees are invalid values", "[serve][oldest][watch]") {
  const Primary context;
  const CUdeviceptr kept = allocate(4096);
  const CUdeviceptr block = allocate(4096);
  CHECK(cuMemFree(block + 512) == CUDA_ERROR_INVALID_VALUE);
  release(block);
  CHECK(cuMemFree(block) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(0x1234567) == CUDA_ERROR_INVALID_VALUE);
  touch(kept, 4096, nullptr);  // a free of a segment's base must not have freed the segment
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  release(kept);
}

TEST_CASE("a thread without a context gets the driver's answer", "[serve][oldest][watch]") {
  const Primary context;
  CUresult got = CUDA_SUCCESS;
  CUresult asked = CUDA_SUCCESS;
  std::thread([&] {
    CUdeviceptr address = 0;
    std::size_t free = 0;
    got = cuMemAlloc(&address, 512);
    asked = cuMemGetInfo(&free, nullptr);
  }).join();
  CHECK(got == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(asked == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("a thread without a context may free, as the real driver lets it", "[serve]") {
  const Primary context;
  const CUdeviceptr block = allocate(512);
  const CUdeviceptr ordered = allocate_on(nullptr, 512);
  CUresult freed = CUDA_ERROR_UNKNOWN;
  CUresult ordered_freed = CUDA_ERROR_UNKNOWN;
  CUresult twice = CUDA_SUCCESS;
  std::thread([&] {
    freed = cuMemFree(block);
    ordered_freed = cuMemFree(ordered);
    twice = cuMemFree(block);
  }).join();
  CHECK(freed == CUDA_SUCCESS);
  CHECK(ordered_freed == CUDA_SUCCESS);
  CHECK(twice == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("rows of a pitched allocation start where the driver's do", "[serve][oldest][watch]") {
  const Primary context;
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  REQUIRE(cuMemAllocPitch(&address, &pitch, 1000, 30, 4) == CUDA_SUCCESS);
  CHECK(pitch == 1024);
  CHECK(address % 512 == 0);
  touch(address, pitch * 30, nullptr);
  release(address);
  REQUIRE(cuMemAllocPitch(&address, &pitch, 512, 1, 16) == CUDA_SUCCESS);
  CHECK(pitch == 512);
  release(address);
  CHECK(cuMemAllocPitch(&address, &pitch, 100, 100, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(&address, &pitch, 0, 100, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAllocPitch(&address, &pitch, std::size_t{1} << 40, std::size_t{1} << 40, 4) !=
        CUDA_SUCCESS);
}

TEST_CASE("memory of the other door, managed memory and pools' memory are freed here, too",
          "[serve][watch]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr ordered = allocate_on(stream, 1 * MiB);
  touch(ordered, 1 * MiB, stream);
  CHECK(cuMemFree(ordered) == CUDA_SUCCESS);

  CUdeviceptr managed = 0;
  REQUIRE(cuMemAllocManaged(&managed, 1 * MiB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  CHECK(cuMemFree(managed) == CUDA_SUCCESS);

  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  REQUIRE(cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
  CUdeviceptr pooled = 0;
  REQUIRE(cuMemAllocFromPoolAsync(&pooled, 1 * MiB, pool, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(cuMemFree(pooled) == CUDA_SUCCESS);
  CHECK(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
}

TEST_CASE("a block freed under pending work is not handed out before it is done",
          "[serve][oldest]") {
  const Primary context;
  const Stream worker;
  const Stream other;
  for (int round = 0; round < 200; ++round) {
    const CUdeviceptr first = allocate(64 * KiB);
    touch(first, 64 * KiB, worker);
    release(first);
    const CUdeviceptr second = allocate(64 * KiB);
    touch(second, 64 * KiB, other);
    release(second);
    if (round % 16 == 0) REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}

TEST_CASE("where nothing else serves, a freed block's work is waited for", "[limit][pressure]") {
  const Primary context;
  const Stream worker;
  const Stream other;
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 0;
  while (cuMemAlloc(&block, 512 * KiB) == CUDA_SUCCESS) blocks.push_back(block);
  REQUIRE(blocks.size() > 100);
  for (const CUdeviceptr each : blocks) touch(each, 512 * KiB, worker);
  for (const CUdeviceptr each : blocks) release(each);
  for (CUdeviceptr& each : blocks) {
    each = allocate(512 * KiB);
    touch(each, 512 * KiB, other);
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
  for (const CUdeviceptr each : blocks) release(each);
}

TEST_CASE("memory comes back once the work behind a free is done", "[serve][oldest]") {
  const Primary context;
  std::set<CUdeviceptr> seen;
  for (int round = 0; round < 500; ++round) {
    const CUdeviceptr block = allocate(2 * MiB);
    touch(block, 2 * MiB, nullptr);
    release(block);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    seen.insert(block);
  }
  CHECK(seen.size() < 200);  // no block is lost on the way round
}

TEST_CASE("out of memory, then recovery", "[serve][oldest]") {
  const Primary context;
  const std::size_t part = round_down(total_memory() / 8, 2 * MiB);
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 0;
  CUresult result = CUDA_SUCCESS;
  while (blocks.size() < 9 && (result = cuMemAlloc(&block, part)) == CUDA_SUCCESS) {
    blocks.push_back(block);
  }
  CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(blocks.size() >= 5);
  for (const CUdeviceptr each : blocks) release(each);
  // Twice the size: nothing cached serves it, so what is cached has to be given back.
  CHECK(cuMemAlloc(&block, 2 * part) == CUDA_SUCCESS);
  release(block);
}

TEST_CASE("what others are told of a whole segment concerns no later block", "[newest]") {
  const Primary context;
  const CUdeviceptr copied = allocate(1000);
  const unsigned on = 1;
  REQUIRE(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, copied) == CUDA_SUCCESS);
  const CUdeviceptr shown = allocate(1000);
  CHECK_FALSE(share_segment(copied, shown));
  int file = -1;  // whether or not the driver gives one
  cuMemGetHandleForAddressRange(&file, shown, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  const CUdeviceptr own = allocate(1000);
  CHECK_FALSE(share_segment(shown, own));
  for (const CUdeviceptr block : {copied, shown, own}) release(block);
}
