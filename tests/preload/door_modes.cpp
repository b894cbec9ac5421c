// IPC, the modes in which calls pass through, limits, strict frees, and threads in a hurry.
#include <atomic>
#include <random>
#include <thread>

#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

TEST_CASE("a segment's base is exported whole and then left alone; others are refused",
          "[serve][segments]") {
  const Primary context;
  const CUdeviceptr base = allocate(15 * MiB);  // a segment of its own, or the start of one
  REQUIRE(segment_of(base) == base);
  CUipcMemHandle handle{};
  REQUIRE(cuIpcGetMemHandle(&handle, base) == CUDA_SUCCESS);
  release(base);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  const CUdeviceptr next = allocate(15 * MiB);
  CHECK_FALSE(share_segment(base, next));  // others may still read there
  release(next);

  const CUdeviceptr one = allocate(4096);
  const CUdeviceptr two = allocate(4096);
  REQUIRE(share_segment(one, two));
  CHECK(cuIpcGetMemHandle(&handle, segment_of(two) == two ? one : two) == CUDA_ERROR_NOT_SUPPORTED);
  release(one);
  release(two);
  const CUdeviceptr ordered = allocate_on(nullptr, 4096);
  CHECK(cuIpcGetMemHandle(&handle, ordered) == CUDA_ERROR_NOT_SUPPORTED);
  release_on(nullptr, ordered);
}

namespace {

/// What the attributes of a pointer say, one by one and at once, which must be the same.
Range range_by_attributes(CUdeviceptr address) {
  Range one_by_one;
  Range at_once;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                      CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  CHECK(cuPointerGetAttribute(&one_by_one.base, attributes[0], address) == CUDA_SUCCESS);
  CHECK(cuPointerGetAttribute(&one_by_one.size, attributes[1], address) == CUDA_SUCCESS);
  void* values[] = {&at_once.base, &at_once.size};
  CHECK(cuPointerGetAttributes(2, attributes, values, address) == CUDA_SUCCESS);
  CHECK(one_by_one.base == at_once.base);
  CHECK(one_by_one.size == at_once.size);
  return at_once;
}

bool lies_in(CUdeviceptr address, const Range& range) { return address - range.base < range.size; }

}  // namespace

TEST_CASE("every call tells the same of what a pointer lies in, which holds the block",
          "[serve][oldest][segments][watch]") {
  const Primary context;
  const std::size_t sizes[] = {1000, 5000, 3 * MiB, 15 * MiB};
  std::vector<CUdeviceptr> blocks;
  for (const std::size_t size : sizes) blocks.push_back(allocate(size));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const CUdeviceptr last = blocks[i] + sizes[i] - 1;
    for (const CUdeviceptr address : {blocks[i], blocks[i] + sizes[i] / 2, last}) {
      INFO(sizes[i] << " bytes, at " << address - blocks[i]);
      const Range range = range_of(address);
      const Range by_attributes = range_by_attributes(address);
      CHECK(by_attributes.base == range.base);
      CHECK(by_attributes.size == range.size);
      CHECK(lies_in(blocks[i], range));
      CHECK(lies_in(last, range));
    }
  }
  for (const CUdeviceptr block : blocks) release(block);
}

TEST_CASE("of virtual memory the address range is the mapping, and the pointer's what is reserved",
          "[serve][stitched]") {
  const Primary context;
  const CUdeviceptr block = allocate(40 * MiB);  // virtual memory under policy:stitch
  const CUdeviceptr ordered = allocate_on(nullptr, 40 * MiB);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  for (const CUdeviceptr start : {block, ordered}) {
    for (std::size_t offset = 0; offset < 40 * MiB; offset += 10 * MiB - 1) {
      const Range mapping = range_of(start + offset);
      const Range reserved = range_by_attributes(start + offset);
      CHECK(lies_in(start + offset, mapping));
      CHECK(lies_in(mapping.base, reserved));
      CHECK(lies_in(mapping.base + mapping.size - 1, reserved));
      CHECK(lies_in(start + 40 * MiB - 1, reserved));
    }
  }
  release_on(nullptr, ordered);
  release(block);
}

TEST_CASE("a segment with synchronous copies is shared with nobody", "[serve][oldest][segments]") {
  const Primary context;
  const CUdeviceptr block = allocate(30 * MiB);
  const unsigned int on = 1;
  REQUIRE(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block) == CUDA_SUCCESS);
  release(block);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  const CUdeviceptr next = allocate(30 * MiB);
  CHECK_FALSE(share_segment(block, next));
  release(next);
}

TEST_CASE("stitched, cudaMalloc's blocks that lie apart serve one large request",
          "[stitched][standin]") {
  const Primary context;
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(allocate(40 * MiB));
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    touch(blocks[i], 40 * MiB, nullptr);
    release(blocks[i]);
  }
  const auto from_driver = [] {
    return driver_calls("cuMemCreate") + driver_calls("cuMemAlloc_v2");
  };
  const std::uint64_t before = from_driver();
  CHECK(before > 0);
  const CUdeviceptr large = allocate(200 * MiB);
  touch(large, 200 * MiB, CU_STREAM_PER_THREAD);
  CHECK(from_driver() == before);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CUipcMemHandle handle{};
  CHECK(cuIpcGetMemHandle(&handle, large) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMemFree(large + 512) == CUDA_ERROR_INVALID_VALUE);
  release(large);
  for (std::size_t i = 1; i < blocks.size(); i += 2) release(blocks[i]);
  CHECK(hazards() == 0);
}

TEST_CASE("where calls pass through, every allocation is the driver's own", "[watch][dedicated]") {
  const Primary context;
  const CUdeviceptr one = allocate(1000);
  const CUdeviceptr two = allocate(1000);
  CHECK(segment_of(one) == one);
  CHECK(segment_of(two) == two);
  CHECK(range_of(two).size == 1000);  // a byte beyond is out of bounds, for who watches that
  CUipcMemHandle handle{};
  CHECK(cuIpcGetMemHandle(&handle, two) == CUDA_SUCCESS);
  release(one);
  release(two);
}

TEST_CASE("dedicated segments leave the stream-ordered door served", "[dedicated]") {
  const Primary context;
  const Stream stream;
  const std::uint64_t before = pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  const CUdeviceptr block = allocate_on(stream, 700);
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == before + 1024);
  CHECK(cuMemFree(block) == CUDA_SUCCESS);
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == before);
}

TEST_CASE("a strict free returns when the device is idle", "[strict]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr block = allocate(1 * MiB);
  const CUdeviceptr target = allocate(1 * MiB);
  touch(target, 1 * MiB, stream);
  release(block);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
  release(target);
}

TEST_CASE("a free does not wait for the device", "[serve][oldest][standin]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr block = allocate(1 * MiB);
  touch(block, 1 * MiB, stream);
  release(block);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("both doors share one limit", "[limit]") {
  const Primary context;
  const Stream stream;
  CUdeviceptr block = 0;
  CUdeviceptr ordered = 0;
  REQUIRE(cuMemAlloc(&block, 60 * MiB) == CUDA_SUCCESS);
  CHECK(cuMemAllocAsync(&ordered, 60 * MiB, stream) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAllocAsync(&ordered, 30 * MiB, stream) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync(ordered, stream) == CUDA_SUCCESS);
  release(block);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  // What one door has cached does not stand in the way of the other.
  CHECK(cuMemAllocAsync(&ordered, 90 * MiB, stream) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync(ordered, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&block, 90 * MiB) == CUDA_SUCCESS);
  release(block);
}

TEST_CASE("threads near out of memory fail cleanly or succeed, and lose nothing", "[limit]") {
  const Primary context;
  std::atomic<int> served{0};
  std::atomic<int> refused{0};
  std::atomic<int> odd{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      cuCtxSetCurrent(context.get());
      std::mt19937 random(seed);
      std::vector<CUdeviceptr> blocks;
      for (int step = 0; step < 400; ++step) {
        CUdeviceptr block = 0;
        const CUresult result = step % 2 == 0
                                    ? cuMemAlloc(&block, (1 + random() % 12) * MiB)
                                    : cuMemAllocAsync(&block, (1 + random() % 12) * MiB, nullptr);
        if (result == CUDA_SUCCESS) {
          ++served;
          blocks.push_back(block);
        } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
          ++refused;
        } else {
          ++odd;
        }
        while (blocks.size() > 4 || (result != CUDA_SUCCESS && !blocks.empty())) {
          if (cuMemFree(blocks.back()) != CUDA_SUCCESS) ++odd;
          blocks.pop_back();
        }
      }
      for (const CUdeviceptr block : blocks) {
        if (cuMemFree(block) != CUDA_SUCCESS) ++odd;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(odd == 0);
  CHECK(served > 400);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CUdeviceptr most = 0;  // all of it has come back
  CHECK(cuMemAlloc(&most, 90 * MiB) == CUDA_SUCCESS);
  release(most);
}

TEST_CASE("threads at both doors of one context", "[serve][watch]") {
  const Primary context;
  std::atomic<int> odd{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      cuCtxSetCurrent(context.get());
      CUstream stream = nullptr;
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      std::mt19937 random(seed);
      for (int step = 0; step < 120; ++step) {
        const std::size_t size = 512 + random() % (2 * MiB);
        CUdeviceptr block = 0;
        CUdeviceptr ordered = 0;
        odd += cuMemAlloc(&block, size) != CUDA_SUCCESS;
        odd += cuMemAllocAsync(&ordered, size, stream) != CUDA_SUCCESS;
        odd += cuMemsetD8Async(block, 1, size, stream) != CUDA_SUCCESS;
        odd += cuMemsetD8Async(ordered, 1, size, stream) != CUDA_SUCCESS;
        odd += cuMemFree(block) != CUDA_SUCCESS;
        odd += cuMemFreeAsync(ordered, stream) != CUDA_SUCCESS;
        if (step % 10 == 0) cuStreamSynchronize(stream);
      }
      cuStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(odd == 0);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}
