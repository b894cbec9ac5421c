// The default pool's attributes and trim; memory information.
#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

namespace {

constexpr auto used = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
constexpr auto used_high = CU_MEMPOOL_ATTR_USED_MEM_HIGH;
constexpr auto reserved = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
constexpr auto reserved_high = CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;

void trim(std::size_t keep) { REQUIRE(cuMemPoolTrimTo(default_pool(), keep) == CUDA_SUCCESS); }

}  // namespace

TEST_CASE("the default pool's statistics are the heap's", "[serve]") {
  const Primary context;
  const Stream stream;
  trim(0);
  const std::uint64_t before = pool_statistic(used);
  const CUdeviceptr one = allocate_on(stream, 10 * MiB);
  const CUdeviceptr two = allocate_on(stream, 5 * MiB);
  CHECK(pool_statistic(used) == before + 15 * MiB);
  CHECK(pool_statistic(reserved) >= before + 15 * MiB);
  release_on(stream, one);
  CHECK(pool_statistic(used) == before + 5 * MiB);
  CHECK(pool_statistic(used_high) >= before + 15 * MiB);
  REQUIRE(reset_statistic(used_high) == CUDA_SUCCESS);
  CHECK(pool_statistic(used_high) == before + 5 * MiB);
  release_on(stream, two);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  trim(0);
  CHECK(pool_statistic(reserved_high) >= before + 15 * MiB);
  REQUIRE(reset_statistic(reserved_high) == CUDA_SUCCESS);
  CHECK(pool_statistic(reserved_high) == pool_statistic(reserved));
}

TEST_CASE("attributes that the driver refuses are refused", "[serve][watch]") {
  const Primary context;
  cuuint64_t value = 5;
  CHECK(cuMemPoolSetAttribute(default_pool(), used_high, &value) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemPoolSetAttribute(default_pool(), used, &value) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the release threshold and the reuse attributes are kept as set", "[serve][watch]") {
  const Primary context;
  cuuint64_t threshold = ~cuuint64_t{0};
  REQUIRE(cuMemPoolSetAttribute(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) ==
          CUDA_SUCCESS);
  threshold = 0;
  REQUIRE(cuMemPoolGetAttribute(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) ==
          CUDA_SUCCESS);
  CHECK(threshold == ~cuuint64_t{0});
  int on = 1;
  REQUIRE(cuMemPoolSetAttribute(default_pool(), CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                                &on) == CUDA_SUCCESS);
}

TEST_CASE("a trim gives back what is free, down to what is to be kept", "[serve]") {
  const Primary context;
  const Stream stream;
  trim(0);
  const std::uint64_t before = pool_statistic(reserved);
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocate_on(stream, 64 * MiB));
  for (const CUdeviceptr block : blocks) release_on(stream, block);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  trim(before + 256 * MiB);
  CHECK(pool_statistic(reserved) <= before + 256 * MiB);
  CHECK(pool_statistic(reserved) >= before + 128 * MiB);
  trim(0);
  CHECK(pool_statistic(reserved) <= before);
}

TEST_CASE("free memory never rises by an allocation nor falls by a free", "[serve][watch]") {
  const Primary context;
  const Stream stream;
  const std::size_t sizes[] = {512,     300 * KiB, 1 * MiB,  3 * MiB,
                               9 * MiB, 21 * MiB,  64 * MiB, 200 * MiB};
  std::size_t last = free_memory();
  const auto step = [&](bool allocating) {
    const std::size_t now = free_memory();
    if (allocating) {
      CHECK(now <= last);
    } else {
      CHECK(now >= last);
    }
    CHECK(now <= total_memory());
    last = now;
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<CUdeviceptr> blocks;
    for (const std::size_t size : sizes) {
      blocks.push_back(allocate(size));
      step(true);
      blocks.push_back(allocate_on(stream, size));
      step(true);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 0) {
        release(blocks[i]);
      } else {
        release_on(stream, blocks[i]);
      }
      step(false);
    }
  }
}

TEST_CASE("memory information takes either pointer alone", "[serve][oldest][watch]") {
  const Primary context;
  std::size_t free = 0;
  std::size_t total = 0;
  CHECK(cuMemGetInfo(&free, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemGetInfo(nullptr, &total) == CUDA_SUCCESS);
  CHECK(free > 0);
  CHECK(total >= free);
}

TEST_CASE("cached memory counts as free", "[serve][oldest]") {
  const Primary context;
  const std::size_t before = free_memory();
  release(allocate(256 * MiB));
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(free_memory() == before);
}
