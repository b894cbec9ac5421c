// Memory of the stand-in: what succeeds, and what fails in which way.
#include <unistd.h>

#include <sys/wait.h>

#include "tests/driver/test_support.hpp"

using namespace standin_test;

namespace {

constexpr std::size_t MiB = 1 << 20;

CUmemAllocationProp on_device(int device = 0) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {};
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

CUmemGenericAllocationHandle create(std::size_t size) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp properties = on_device();
  REQUIRE(DRIVER(cuMemCreate)(&handle, size, &properties, 0) == CUDA_SUCCESS);
  return handle;
}

void grant(CUdeviceptr at, std::size_t size) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  REQUIRE(DRIVER(cuMemSetAccess)(at, size, &access, 1) == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE("memory is got, written, read back and freed", "[plain]") {
  Primary primary;
  const auto before = used();
  const CUdeviceptr at = allocate(3 * MiB);
  CHECK(used() > before);
  std::vector<unsigned char> bytes(3 * MiB, 7);
  OK(DRIVER(cuMemcpyHtoD_v2)(at, bytes.data(), bytes.size()));
  std::fill(bytes.begin(), bytes.end(), 0);
  OK(DRIVER(cuMemcpyDtoH_v2)(bytes.data(), at, bytes.size()));
  CHECK(bytes == std::vector<unsigned char>(3 * MiB, 7));
  release(at);
  CHECK(used() == before);
}

TEST_CASE("wrong requests and frees fail as the real driver fails them", "[plain]") {
  Primary primary;
  CUdeviceptr at = 0;
  CHECK(DRIVER(cuMemAlloc_v2)(&at, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(DRIVER(cuMemAlloc_v2)(&at, ~std::size_t{0}) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(DRIVER(cuMemAlloc_v2)(nullptr, 512) == CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuMemFree_v2)(0));
  at = allocate(MiB);
  CHECK(DRIVER(cuMemFree_v2)(at + 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(DRIVER(cuMemsetD8_v2)(at, 0, 4 * MiB) == CUDA_ERROR_INVALID_VALUE);
  release(at);
  CHECK(DRIVER(cuMemFree_v2)(at) == CUDA_ERROR_INVALID_VALUE);
  CHECK(DRIVER(cuMemsetD8_v2)(at, 0, 512) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("memory information adds up, and takes null pointers", "[plain]") {
  Primary primary;
  size_t free = 0;
  size_t total = 0;
  OK(DRIVER(cuMemGetInfo_v2)(&free, &total));
  CHECK(free == total);
  const CUdeviceptr at = allocate(100 * MiB);
  size_t left = 0;
  OK(DRIVER(cuMemGetInfo_v2)(&left, nullptr));
  CHECK(left == free - 100 * MiB);
  OK(DRIVER(cuMemGetInfo_v2)(nullptr, nullptr));
  release(at);
}

TEST_CASE("a device that is full says so, and has room again after a free", "[plain]") {
  Primary primary;
  size_t free = 0;
  OK(DRIVER(cuMemGetInfo_v2)(&free, nullptr));
  const CUdeviceptr at = allocate(free);
  CUdeviceptr more = 0;
  CHECK(DRIVER(cuMemAlloc_v2)(&more, 512) == CUDA_ERROR_OUT_OF_MEMORY);
  release(at);
  OK(DRIVER(cuMemAlloc_v2)(&more, 512));
  release(more);
}

TEST_CASE("every mapping of a handle shows the same bytes", "[virtual]") {
  Primary primary;
  CUdeviceptr at = 0;
  OK(DRIVER(cuMemAddressReserve)(&at, 8 * MiB, 0, 0, 0));
  const auto handle = create(2 * MiB);
  OK(DRIVER(cuMemMap)(at, 2 * MiB, 0, handle, 0));
  OK(DRIVER(cuMemMap)(at + 4 * MiB, 2 * MiB, 0, handle, 0));
  CHECK(DRIVER(cuMemsetD8_v2)(at, 1, 2 * MiB) == CUDA_ERROR_ILLEGAL_ADDRESS);  // no access yet
  grant(at, 2 * MiB);
  grant(at + 4 * MiB, 2 * MiB);
  OK(DRIVER(cuMemsetD8_v2)(at, 9, 2 * MiB));
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(holds(at + 4 * MiB, 2 * MiB, 9));
  CHECK(DRIVER(cuMemUnmap)(at, MiB) == CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuMemRelease)(handle));
  CHECK(DRIVER(cuMemAddressFree)(at, 8 * MiB) == CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuMemUnmap)(at, 2 * MiB));
  CHECK(holds(at + 4 * MiB, 2 * MiB, 9));
  OK(DRIVER(cuMemUnmap)(at + 4 * MiB, 2 * MiB));
  OK(DRIVER(cuMemAddressFree)(at, 8 * MiB));
  CHECK(used() == 0);
}

TEST_CASE("a handle maps only whole", "[virtual]") {
  Primary primary;
  CUdeviceptr at = 0;
  OK(DRIVER(cuMemAddressReserve)(&at, 8 * MiB, 0, 0, 0));
  const auto handle = create(4 * MiB);
  CHECK(DRIVER(cuMemMap)(at, 2 * MiB, 0, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(DRIVER(cuMemMap)(at, 2 * MiB, 2 * MiB, handle, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(DRIVER(cuMemRelease)(handle + 1) == CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuMemRelease)(handle));
  OK(DRIVER(cuMemAddressFree)(at, 8 * MiB));
}

TEST_CASE("plain memory dies with its context, virtual memory does not", "[context]") {
  OK(DRIVER(cuInit)(0));
  CUcontext context = new_context();
  unsigned long long first = 0;
  OK(DRIVER(cuCtxGetId)(context, &first));
  const CUdeviceptr plain = allocate(4 * MiB);
  const auto handle = create(2 * MiB);
  OK(DRIVER(cuCtxDestroy_v2)(context));
  CHECK(used() == 2 * MiB);
  OK(DRIVER(cuMemRelease)(handle));
  CUdeviceptr at = 0;
  CHECK(DRIVER(cuMemAlloc_v2)(&at, 512) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(DRIVER(cuMemFree_v2)(plain) == CUDA_ERROR_INVALID_CONTEXT);

  CUcontext again = new_context();
  CHECK(again == context);  // the handle is used again, the id is not
  unsigned long long second = 0;
  OK(DRIVER(cuCtxGetId)(again, &second));
  CHECK(second != first);
  CHECK(DRIVER(cuMemFree_v2)(plain) == CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuCtxDestroy_v2)(again));
}

TEST_CASE("a reset primary context is dead until it is retained again", "[context]") {
  Primary primary;
  allocate(MiB);
  OK(DRIVER(cuDevicePrimaryCtxReset_v2)(0));
  CHECK(used() == 0);
  CUdeviceptr at = 0;
  CHECK(DRIVER(cuMemAlloc_v2)(&at, 512) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  Primary revived;
  release(allocate(512));
}

TEST_CASE("a thread starts without a context", "[context]") {
  Primary primary;
  CUresult verdict = CUDA_SUCCESS;
  std::thread([&] {
    CUdeviceptr at = 0;
    verdict = DRIVER(cuMemAlloc_v2)(&at, 512);
  }).join();
  CHECK(verdict == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("an interior pointer exports its whole block, and virtual memory none", "[ipc]") {
  Primary primary;
  const CUdeviceptr at = allocate(4 * MiB);
  CUipcMemHandle whole{};
  CUipcMemHandle part{};
  OK(DRIVER(cuIpcGetMemHandle)(&whole, at));
  OK(DRIVER(cuIpcGetMemHandle)(&part, at + MiB));
  CHECK(std::equal(std::begin(whole.reserved), std::end(whole.reserved), part.reserved));
  CUdeviceptr base = 0;
  size_t size = 0;
  OK(DRIVER(cuMemGetAddressRange_v2)(&base, &size, at + MiB));
  CHECK(base == at);
  CHECK(size == 4 * MiB);
  const CUdeviceptr pooled = allocate_on(nullptr, MiB);
  CHECK(DRIVER(cuIpcGetMemHandle)(&part, pooled) == CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuMemFreeAsync)(pooled, nullptr));
  release(at);
}

TEST_CASE("another process sees an exported block", "[.fork]") {
  int to_child[2];
  int from_child[2];
  REQUIRE((pipe(to_child) == 0 && pipe(from_child) == 0));
  const pid_t child = fork();  // before the driver starts here, so the child has its own
  if (child == 0) {
    CUipcMemHandle handle{};
    if (read(to_child[0], &handle, sizeof handle) != sizeof handle) _exit(1);
    CUdeviceptr at = 0;
    DRIVER(cuInit)(0);
    new_context();
    char verdict = 0;
    if (DRIVER(cuIpcOpenMemHandle_v2)(&at, handle, 1) == CUDA_SUCCESS) {
      verdict = holds(at, 1000, 5) ? 'y' : 'n';
      DRIVER(cuMemsetD8_v2)(at, 6, 1000);
      DRIVER(cuCtxSynchronize)();
      if (DRIVER(cuIpcCloseMemHandle)(at) != CUDA_SUCCESS) verdict = 'c';
    }
    if (write(from_child[1], &verdict, 1) != 1) _exit(1);
    _exit(0);
  }
  {
    Primary primary;
    allocate(512);
    const CUdeviceptr at = allocate(1000);
    fill(nullptr, at, 1000, 5);
    OK(DRIVER(cuCtxSynchronize)());
    CUipcMemHandle handle{};
    OK(DRIVER(cuIpcGetMemHandle)(&handle, at));
    CUdeviceptr own = 0;
    CHECK(DRIVER(cuIpcOpenMemHandle_v2)(&own, handle, 1) == CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(write(to_child[1], &handle, sizeof handle) == sizeof handle);
    char verdict = 0;
    REQUIRE(read(from_child[0], &verdict, 1) == 1);
    CHECK(verdict == 'y');
    CHECK(holds(at, 1000, 6));
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("pointers tell what they are", "[pointer]") {
  Primary primary;
  const CUdeviceptr at = allocate(MiB);
  void* host = nullptr;
  OK(DRIVER(cuMemAllocHost_v2)(&host, 4096));
  unsigned type = 0;
  OK(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 5));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  OK(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   reinterpret_cast<CUdeviceptr>(host)));
  CHECK(type == CU_MEMORYTYPE_HOST);
  int unknown = 0;
  CHECK(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      reinterpret_cast<CUdeviceptr>(&unknown)) ==
        CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuMemFreeHost)(host));
  CHECK(DRIVER(cuMemFreeHost)(host) == CUDA_ERROR_INVALID_VALUE);
  release(at);
}

TEST_CASE("a forked child of an initialised process cannot use the driver", "[fork]") {
  Primary primary;
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr at = 0;
    _exit(DRIVER(cuMemAlloc_v2)(&at, 512) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
