// Contexts and devices: made, destroyed, reset, made again.
#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

namespace {

/// Both doors work in the current context, on memory that the device can write.
void use_both_doors() {
  const CUdeviceptr block = allocate(1 * MiB);
  touch(block, 1 * MiB, nullptr);
  const CUdeviceptr ordered = allocate_on(nullptr, 1 * MiB);
  touch(ordered, 1 * MiB, nullptr);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  release(block);
  release_on(nullptr, ordered);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
}

/// Both doors of one device, many times: how many answers were not what they must be. Catch's
/// macros are for one thread at a time.
int wrong_answers(CUdevice device, CUcontext context, CUmemoryPool pool) {
  int wrong = cuCtxSetCurrent(context) != CUDA_SUCCESS;
  for (int round = 0; round < 50; ++round) {
    CUdeviceptr block = 0;
    CUdeviceptr ordered = 0;
    cuuint64_t used = 0;
    int owner = -1;
    const CUresult answers[] = {
        cuMemAlloc(&block, 1 * MiB),
        cuMemsetD8Async(block, 1, 1 * MiB, nullptr),
        cuMemAllocAsync(&ordered, 3 * MiB, nullptr),
        cuMemsetD8Async(ordered, 1, 3 * MiB, nullptr),
        cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used),
        cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ordered),
        cuMemFree(block),
        cuMemFreeAsync(ordered, nullptr),
        cuCtxSynchronize(),
    };
    for (const CUresult answer : answers) wrong += answer != CUDA_SUCCESS;
    wrong += used != 3 * MiB || owner != device;
  }
  return wrong;
}

/// An entry by its exported name: the header gives the old forms' names to the new ones.
template <class Argument>
CUresult call(const std::string& name, Argument argument) {
  const auto entry = reinterpret_cast<CUresult (*)(Argument)>(dlsym(RTLD_DEFAULT, name.c_str()));
  REQUIRE(entry != nullptr);
  return entry(argument);
}

}  // namespace

TEST_CASE("a context destroyed takes its memory along", "[serve]") {
  const Primary primary;
  use_both_doors();
  const std::size_t before = free_memory();
  const std::string destroy = GENERATE("cuCtxDestroy", "cuCtxDestroy_v2");
  for (int round = 0; round < 5; ++round) {
    CUcontext context = nullptr;
    REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    use_both_doors();
    allocate(30 * MiB);  // never freed
    allocate_on(nullptr, 30 * MiB);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE(call(destroy, context) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxSetCurrent(primary.get()) == CUDA_SUCCESS);
  CHECK(free_memory() >= before);
  use_both_doors();
}

TEST_CASE("a primary context is reset and used again", "[serve]") {
  const Primary primary;
  const std::string reset = GENERATE("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2");
  for (int round = 0; round < 5; ++round) {
    use_both_doors();
    const CUdeviceptr lost = allocate(30 * MiB);
    const CUdeviceptr lost_too = allocate_on(nullptr, 30 * MiB);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE(call(reset, CUdevice{0}) == CUDA_SUCCESS);
    CUcontext again = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&again, 0) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(again) == CUDA_SUCCESS);
    CHECK(cuMemFree(lost) != CUDA_SUCCESS);
    CHECK(cuMemFree(lost_too) != CUDA_SUCCESS);
  }
  use_both_doors();
  CHECK(pool_statistic(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
}

TEST_CASE("a primary context lives until its last holder releases it", "[serve][oldest][watch]") {
  const Primary outer;
  const CUdeviceptr block = allocate(4 * MiB);
  {
    CUcontext same = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&same, 0) == CUDA_SUCCESS);
    REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  }
  touch(block, 4 * MiB, nullptr);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  release(block);
}

TEST_CASE("the last release of a primary context takes its memory along", "[serve]") {
  const std::string leave = GENERATE("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2");
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  while (cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS) continue;  // held since a reset
  CUdeviceptr lost[2] = {};
  std::size_t before = 0;
  for (int round = 0; round < 5; ++round) {
    CUcontext context = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(cuCtxPushCurrent(context) == CUDA_SUCCESS);
    if (round == 0) before = free_memory();
    CHECK(free_memory() == before);
    for (const CUdeviceptr block : lost) {
      if (round > 0) CHECK(cuMemFree(block) != CUDA_SUCCESS);
    }
    use_both_doors();
    lost[0] = allocate(30 * MiB);
    lost[1] = allocate_on(nullptr, 30 * MiB);
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE(cuCtxPopCurrent(&context) == CUDA_SUCCESS);
    REQUIRE(call(leave, CUdevice{0}) == CUDA_SUCCESS);
  }
}

TEST_CASE("memory is freed from another context than its own", "[serve][watch]") {
  const Primary primary;
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  const CUdeviceptr block = allocate(1 * MiB);
  const CUdeviceptr ordered = allocate_on(nullptr, 1 * MiB);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(primary.get()) == CUDA_SUCCESS);
  CHECK(cuMemFree(block) == CUDA_SUCCESS);
  CHECK(cuMemFree(ordered) == CUDA_SUCCESS);
  CHECK(cuMemFree(block) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuCtxDestroy(context) == CUDA_SUCCESS);
}

TEST_CASE("a stream's memory comes from its own context, whichever is current", "[serve]") {
  const Primary primary;
  use_both_doors();
  CUcontext context = nullptr;
  REQUIRE(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  {
    const Stream stream;
    const CUdeviceptr warm = allocate_on(stream, 2 * MiB);
    release_on(stream, warm);
    REQUIRE(cuCtxSetCurrent(primary.get()) == CUDA_SUCCESS);
    CHECK(allocate_on(stream, 2 * MiB) == warm);
    release_on(stream, warm);
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  }
  REQUIRE(cuCtxDestroy(context) == CUDA_SUCCESS);
}

TEST_CASE("each device has memory of its own", "[devices]") {
  int count = 0;
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  REQUIRE(count >= 2);
  std::vector<std::unique_ptr<Primary>> contexts;
  for (CUdevice device = 0; device < count; ++device) {
    contexts.push_back(std::make_unique<Primary>(device));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (CUdevice device = 0; device < count; ++device) {
    threads.emplace_back([&, device, pool = default_pool(device)] {
      wrong += wrong_answers(device, contexts[device]->get(), pool);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(hazards() == 0);
}

TEST_CASE("access by a peer is given to what is mapped and to what comes", "[devices]") {
  const Primary first(0);
  const auto given = [] { return driver_calls("cuMemSetAccess"); };
  const CUdeviceptr before = allocate_on(nullptr, 4 * MiB);
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  std::uint64_t last = given();
  REQUIRE(cuMemPoolSetAccess(default_pool(0), &access, 1) == CUDA_SUCCESS);
  CHECK(given() > last);
  CUmemAccess_flags pool_flags{};
  REQUIRE(cuMemPoolGetAccess(&pool_flags, default_pool(0), &access.location) == CUDA_SUCCESS);
  CHECK(pool_flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  const CUdeviceptr after = allocate_on(nullptr, 256 * MiB);
  for (const CUdeviceptr block : {before, after}) {
    unsigned long long flags = 0;
    REQUIRE(cuMemGetAccess(&flags, &access.location, block) == CUDA_SUCCESS);
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  last = given();
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  REQUIRE(cuMemPoolSetAccess(default_pool(0), &access, 1) == CUDA_SUCCESS);
  CHECK(given() > last);
  REQUIRE(cuMemPoolGetAccess(&pool_flags, default_pool(0), &access.location) == CUDA_SUCCESS);
  CHECK(pool_flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  const CUdeviceptr later = allocate_on(nullptr, 1 * GiB);
  for (const CUdeviceptr block : {before, after, later}) {
    unsigned long long flags = 0;
    REQUIRE(cuMemGetAccess(&flags, &access.location, block) == CUDA_SUCCESS);
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    const CUmemLocation own{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    REQUIRE(cuMemGetAccess(&flags, &own, block) == CUDA_SUCCESS);
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    release_on(nullptr, block);
  }
}
