// Streams and events of the stand-in: work is pending until somebody waits for it, and memory that
// is touched out of order is a hazard.
#include <chrono>

#include "tests/driver/test_support.hpp"

using namespace standin_test;

namespace {

constexpr std::size_t KiB = 1024;

/// A primary context with a block and two streams.
struct Scene {
  Primary primary;
  CUdeviceptr at = allocate(64 * KiB);
  CUstream one = new_stream();
  CUstream two = new_stream();
  unsigned long long hazards_before = hazards();
  unsigned long long new_hazards() const { return hazards() - hazards_before; }
};

}  // namespace

TEST_CASE("work is done when its stream is waited for, not before", "[order]") {
  Scene scene;
  OK(DRIVER(cuMemsetD8_v2)(scene.at, 0, 64 * KiB));
  OK(DRIVER(cuCtxSynchronize)());
  fill(scene.one, scene.at, KiB, 1);
  CHECK(DRIVER(cuStreamQuery)(scene.one) == CUDA_ERROR_NOT_READY);
  OK(DRIVER(cuStreamQuery)(scene.two));
  CHECK(holds(scene.at, KiB, 0));
  OK(DRIVER(cuStreamSynchronize)(scene.one));
  CHECK(holds(scene.at, KiB, 1));
  OK(DRIVER(cuStreamQuery)(scene.one));
}

TEST_CASE("an event passes with the work before it", "[order]") {
  Scene scene;
  const CUevent event = new_event();
  OK(DRIVER(cuEventQuery)(event));  // never recorded
  fill(scene.one, scene.at, KiB, 1);
  OK(DRIVER(cuEventRecord)(event, scene.one));
  fill(scene.one, scene.at, KiB, 2);
  CHECK(DRIVER(cuEventQuery)(event) == CUDA_ERROR_NOT_READY);
  OK(DRIVER(cuEventSynchronize)(event));
  CHECK(holds(scene.at, KiB, 1));
  CHECK(pending() == 1);
  OK(DRIVER(cuEventDestroy_v2)(event));
  CHECK(DRIVER(cuEventQuery)(event) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an event of the context covers its non-blocking streams", "[order]") {
  Scene scene;
  const CUevent event = new_event();
  CUcontext context = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&context));
  fill(scene.two, scene.at, KiB, 1);
  OK(DRIVER(cuCtxRecordEvent)(context, event));
  CHECK(DRIVER(cuEventQuery)(event) == CUDA_ERROR_NOT_READY);
  OK(DRIVER(cuStreamWaitEvent)(scene.one, event, 0));
  fill(scene.one, scene.at, KiB, 2);
  CHECK(scene.new_hazards() == 0);
  OK(DRIVER(cuStreamSynchronize)(scene.one));
  CHECK(holds(scene.at, KiB, 2));
  OK(DRIVER(cuEventQuery)(event));
}

TEST_CASE("cuMemFree waits for all work", "[order]") {
  Scene scene;
  const CUdeviceptr other = allocate(KiB);
  fill(scene.one, scene.at, KiB, 3);
  release(other);
  CHECK(holds(scene.at, KiB, 3));
  CHECK(pending() == 0);
}

TEST_CASE("a copy from pageable memory is staged, one from pinned memory is not", "[order]") {
  Scene scene;
  std::vector<unsigned char> pageable(KiB, 1);
  void* pinned = nullptr;
  OK(DRIVER(cuMemHostAlloc)(&pinned, KiB, 0));
  auto* bytes = static_cast<unsigned char*>(pinned);
  std::fill(bytes, bytes + KiB, 1);
  OK(DRIVER(cuMemcpyHtoDAsync_v2)(scene.at, pageable.data(), KiB, scene.one));
  OK(DRIVER(cuMemcpyHtoDAsync_v2)(scene.at + KiB, pinned, KiB, scene.one));
  std::fill(pageable.begin(), pageable.end(), 2);
  std::fill(bytes, bytes + KiB, 2);
  OK(DRIVER(cuStreamSynchronize)(scene.one));
  CHECK(holds(scene.at, KiB, 1));
  CHECK(holds(scene.at + KiB, KiB, 2));
  OK(DRIVER(cuMemcpyDtoHAsync_v2)(pageable.data(), scene.at + KiB, KiB, scene.one));
  CHECK(pageable == std::vector<unsigned char>(KiB, 2));  // at once
  OK(DRIVER(cuMemFreeHost)(pinned));
}

TEST_CASE("kernels fill, verify, and wait for the host", "[order]") {
  Scene scene;
  int flag = 0;
  unsigned wrong = 0;
  OK(launch("spin", scene.one, &flag));
  OK(launch("fill", scene.one, scene.at, std::size_t{KiB}, static_cast<unsigned char>(4)));
  OK(launch("verify", scene.one, scene.at, std::size_t{KiB}, static_cast<unsigned char>(4),
            &wrong));
  OK(launch("verify", scene.one, scene.at, std::size_t{KiB}, static_cast<unsigned char>(5),
            &wrong));
  CHECK(DRIVER(cuStreamQuery)(scene.one) == CUDA_ERROR_NOT_READY);
  std::thread host([&flag] { __atomic_store_n(&flag, 1, __ATOMIC_RELEASE); });
  OK(DRIVER(cuStreamSynchronize)(scene.one));
  host.join();
  CHECK(wrong == KiB);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(DRIVER(cuModuleLoadData)(&module, "unheard of") == CUDA_ERROR_INVALID_IMAGE);
  OK(DRIVER(cuModuleLoadData)(&module, "standin"));
  CHECK(DRIVER(cuModuleGetFunction)(&function, module, "nothing") == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("the legacy stream waits for blocking streams, and they for it", "[order]") {
  Scene scene;
  const CUstream blocking = new_stream(CU_STREAM_DEFAULT);
  fill(blocking, scene.at, KiB, 1);
  fill(nullptr, scene.at, KiB, 2);
  fill(blocking, scene.at, KiB, 3);
  CHECK(scene.new_hazards() == 0);
  OK(DRIVER(cuStreamSynchronize)(blocking));
  CHECK(holds(scene.at, KiB, 3));
}

TEST_CASE("each thread has a default stream of its own", "[order]") {
  Scene scene;
  fill(CU_STREAM_PER_THREAD, scene.at, KiB, 1);
  CHECK(DRIVER(cuStreamQuery)(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY);
  CUresult verdict = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    CUcontext context = nullptr;
    DRIVER(cuDevicePrimaryCtxRetain)(&context, 0);
    DRIVER(cuCtxSetCurrent)(context);
    verdict = DRIVER(cuStreamQuery)(CU_STREAM_PER_THREAD);
    DRIVER(cuDevicePrimaryCtxRelease_v2)(0);
  }).join();
  CHECK(verdict == CUDA_SUCCESS);
  OK(DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  CHECK(holds(scene.at, KiB, 1));
}

TEST_CASE("a destroyed stream's work is still done", "[order]") {
  Scene scene;
  fill(scene.one, scene.at, KiB, 6);
  OK(DRIVER(cuStreamDestroy_v2)(scene.one));
  CHECK(DRIVER(cuStreamQuery)(scene.one) == CUDA_ERROR_INVALID_HANDLE);
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(holds(scene.at, KiB, 6));
}

TEST_CASE("a destroyed context's work is done, and its streams are gone", "[order]") {
  OK(DRIVER(cuInit)(0));
  CUcontext context = new_context();
  const CUstream stream = new_stream();
  fill(stream, allocate(KiB), KiB, 1);
  OK(DRIVER(cuCtxDestroy_v2)(context));
  CHECK(pending() == 0);
  CHECK(used() == 0);
}

TEST_CASE("stream-ordered memory comes back at once on its stream, else once the free is passed",
          "[pool]") {
  Primary primary;
  const CUstream one = new_stream();
  const CUstream two = new_stream();
  const CUdeviceptr first = allocate_on(one, KiB);
  fill(one, first, KiB, 1);
  OK(DRIVER(cuMemFreeAsync)(first, one));
  CHECK(DRIVER(cuMemsetD8Async)(first, 0, KiB, one) == CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr other = allocate_on(two, KiB);
  CHECK(other != first);
  CHECK(allocate_on(one, KiB) == first);
  OK(DRIVER(cuMemFreeAsync)(first, one));
  OK(DRIVER(cuStreamSynchronize)(one));
  CHECK(DRIVER(cuMemFreeAsync)(first, one) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate_on(two, KiB) == first);
}

TEST_CASE("the pool counts what is used and reserved, and trims what is free", "[pool]") {
  Primary primary;
  CUmemoryPool pool = nullptr;
  OK(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
  const auto level = [pool](CUmemPool_attribute which) {
    cuuint64_t value = 0;
    OK(DRIVER(cuMemPoolGetAttribute)(pool, which, &value));
    return value;
  };
  cuuint64_t keep = ~cuuint64_t{0};
  OK(DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  cuuint64_t zero = 0;
  OK(DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  const CUstream stream = new_stream();
  const CUdeviceptr at = allocate_on(stream, 1000);
  CHECK(level(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1024);
  CHECK(level(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == used());
  OK(DRIVER(cuMemFreeAsync)(at, stream));
  OK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(level(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(level(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1024);
  CHECK(level(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > 0);
  OK(DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  CHECK(level(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  cuuint64_t more = 1;
  CHECK(DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &more) ==
        CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuMemPoolTrimTo)(pool, 0));
  CHECK(level(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
  CHECK(used() == 0);
  OK(DRIVER(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero));
}

TEST_CASE("cuMemFree takes stream-ordered memory, cuMemFreeAsync plain memory", "[pool]") {
  Primary primary;
  release(allocate_on(nullptr, KiB));
  OK(DRIVER(cuMemFreeAsync)(allocate(KiB), nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(used() == 0);
}

// What follows makes hazards, after which the process ends with 99: a run of its own.

TEST_CASE("touching pending bytes from an unordered stream is a hazard", "[.hazard]") {
  Scene scene;
  fill(scene.one, scene.at, KiB, 1);
  fill(scene.two, scene.at + KiB, KiB, 1);
  CHECK(scene.new_hazards() == 0);
  fill(scene.two, scene.at + KiB - 1, 1, 2);
  CHECK(scene.new_hazards() == 1);
}

TEST_CASE("the legacy stream does not wait for non-blocking ones", "[.hazard]") {
  Scene scene;
  fill(scene.one, scene.at, KiB, 1);
  fill(nullptr, scene.at, KiB, 2);
  CHECK(scene.new_hazards() == 1);
}

TEST_CASE("unmapping under pending work is a hazard, and the bytes are not touched", "[.hazard]") {
  Scene scene;
  constexpr std::size_t page = 2 << 20;
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(DRIVER(cuMemAddressReserve)(&at, page, 0, 0, 0));
  OK(DRIVER(cuMemCreate)(&handle, page, &properties, 0));
  OK(DRIVER(cuMemMap)(at, page, 0, handle, 0));
  OK(DRIVER(cuMemSetAccess)(at, page, &access, 1));
  fill(scene.one, at, page, 1);
  OK(DRIVER(cuMemUnmap)(at, page));
  CHECK(scene.new_hazards() == 1);
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(scene.new_hazards() == 2);
  OK(DRIVER(cuMemRelease)(handle));
}
