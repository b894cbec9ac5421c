// Look-ups as the real driver answers them, and what the environment changes. Every run of a tag
// that begins with a dot has the environment it needs (CMakeLists.txt).
#include <string>

#include "tests/driver/test_support.hpp"

using namespace standin_test;

namespace {

struct Answer {
  CUresult result = CUDA_SUCCESS;
  void* address = nullptr;
  CUdriverProcAddressQueryResult status{};
};

Answer ask(const char* name, int version, cuuint64_t flags = 0) {
  Answer answer;
  answer.result =
      DRIVER(cuGetProcAddress_v2)(name, &answer.address, version, flags, &answer.status);
  return answer;
}

/// ENTRY rows of the table: every name at every version and in each form.
struct Row {
  const char* base;
  int version;
  bool per_thread;
  const char* symbol;
};
enum { plain = 0, ptsz = 1 };
const Row rows[] = {
#define ENTRY(base, version, stream, symbol) {#base, version, (stream) == ptsz, #symbol},
#include "tests/driver/symbols.def"
#undef ENTRY
};

}  // namespace

TEST_CASE("every look-up leads to the very symbol that dlsym gives", "[lookup]") {
  for (const Row& row : rows) {
    INFO(row.symbol);
    const Answer answer = ask(row.base, row.version, row.per_thread ? 2 : 0);
    REQUIRE(find(row.symbol) != nullptr);
    CHECK(answer.result == CUDA_SUCCESS);
    CHECK(answer.address == find(row.symbol));
    CHECK(answer.status == CU_GET_PROC_ADDRESS_SUCCESS);
  }
}

TEST_CASE("versions and flags choose among the forms of a name", "[lookup]") {
  CHECK(ask("cuMemAlloc", 2000).address == find("cuMemAlloc"));
  CHECK(ask("cuMemAlloc", 3019).address == find("cuMemAlloc"));
  CHECK(ask("cuMemAlloc", 3020).address == find("cuMemAlloc_v2"));
  CHECK(ask("cuMemAlloc", 13000, 2).address == find("cuMemAlloc_v2"));  // it has one form only
  CHECK(ask("cuMemAllocAsync", 11020, 1).address == find("cuMemAllocAsync"));
  CHECK(ask("cuMemAllocAsync", 11020, 2).address == find("cuMemAllocAsync_ptsz"));
  CHECK(ask("cuMemcpyHtoD", 13000, 2).address == find("cuMemcpyHtoD_v2_ptds"));
  CHECK(ask("cuGetProcAddress", 11030).address == find("cuGetProcAddress"));
  CHECK(ask("cuGetProcAddress", 12000).address == find("cuGetProcAddress_v2"));
  CHECK(ask("cuStreamBeginCapture", 10000).address == find("cuStreamBeginCapture"));
  CHECK(ask("cuCtxCreate", 13000).address == find("cuCtxCreate_v4"));
}

TEST_CASE("what is not there is not found, and says why", "[lookup]") {
  const Answer unknown = ask("cuNoSuchEntry", 13000);
  CHECK(unknown.result == CUDA_ERROR_NOT_FOUND);
  CHECK(unknown.address == nullptr);
  CHECK(unknown.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  const Answer early = ask("cuMemAllocAsync", 11010);
  CHECK(early.result == CUDA_ERROR_NOT_FOUND);
  CHECK(early.status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(ask("cuMemAlloc_v2", 13000).result == CUDA_ERROR_NOT_FOUND);
  CHECK(ask("", 0).result == CUDA_ERROR_NOT_FOUND);
  void* address = nullptr;
  OK(DRIVER(cuGetProcAddress_v2)("cuInit", &address, 2000, 0, nullptr));
  const auto first = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t)>(
      find("cuGetProcAddress"));
  OK(first("cuMemAlloc", &address, 3020, 0));
  CHECK(address == find("cuMemAlloc_v2"));
  CHECK(first("cuMemAlloc", nullptr, 3020, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("entries without a body of their own say that they are not supported", "[lookup]") {
  CHECK(reinterpret_cast<int (*)()>(find("cuTexRefCreate"))() == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(find("cuTexRefCreate") != find("cuTexRefDestroy"));
}

TEST_CASE("nothing works before cuInit", "[.fresh]") {
  int count = 0;
  CUdeviceptr at = 0;
  CHECK(DRIVER(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(DRIVER(cuMemAlloc_v2)(&at, 512) == CUDA_ERROR_NOT_INITIALIZED);
  int version = 0;
  OK(DRIVER(cuDriverGetVersion)(&version));
  CHECK(version == 13000);
  CHECK(DRIVER(cuInit)(1) == CUDA_ERROR_INVALID_VALUE);
  OK(DRIVER(cuInit)(0));
  OK(DRIVER(cuDeviceGetCount)(&count));
  CHECK(count == 1);
  CHECK(DRIVER(cuMemAlloc_v2)(&at, 512) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("errors have names", "[lookup]") {
  const char* text = nullptr;
  OK(DRIVER(cuGetErrorName)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::string(text) == "CUDA_ERROR_OUT_OF_MEMORY");
  OK(DRIVER(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::string(text) == "out of memory");
  CHECK(DRIVER(cuGetErrorName)(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
}

// STANDIN_FAIL=cuMemAlloc_v2:2,cuMemFree_v2:every:2:999
TEST_CASE("calls fail as the environment orders", "[.fail]") {
  Primary primary;
  CUdeviceptr one = 0;
  CUdeviceptr two = 0;
  OK(DRIVER(cuMemAlloc_v2)(&one, 512));
  CHECK(DRIVER(cuMemAlloc_v2)(&two, 512) == CUDA_ERROR_OUT_OF_MEMORY);
  OK(DRIVER(cuMemAlloc_v2)(&two, 512));
  OK(DRIVER(cuMemFree_v2)(one));
  CHECK(DRIVER(cuMemFree_v2)(two) == CUDA_ERROR_UNKNOWN);
  OK(DRIVER(cuMemFree_v2)(two));
  CHECK(DRIVER(cuMemFree_v2)(0) == CUDA_ERROR_UNKNOWN);
}

// STANDIN_VERSION=11020
TEST_CASE("an older driver knows no later entries", "[.old]") {
  int version = 0;
  OK(DRIVER(cuDriverGetVersion)(&version));
  CHECK(version == 11020);
  CHECK(ask("cuCtxRecordEvent", 13000).result == CUDA_ERROR_NOT_FOUND);
  CHECK(ask("cuGetProcAddress", 13000).result == CUDA_ERROR_NOT_FOUND);
  CHECK(ask("cuMemAllocAsync", 13000).result == CUDA_SUCCESS);
  CHECK(ask("cuCtxCreate", 13000).address == find("cuCtxCreate_v2"));
}

// STANDIN_VIRTUAL=0
TEST_CASE("a device without virtual memory says so, and refuses its calls", "[.novirtual]") {
  Primary primary;
  int value = -1;
  OK(DRIVER(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                  0));
  CHECK(value == 0);
  CUdeviceptr at = 0;
  CHECK(DRIVER(cuMemAddressReserve)(&at, 2 << 20, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  CHECK(DRIVER(cuMemCreate)(&handle, 2 << 20, &properties, 0) == CUDA_ERROR_NOT_SUPPORTED);
  const CUstream stream = new_stream();
  at = allocate_on(stream, 512);  // pools are another matter
  fill(stream, at, 512, 8);
  OK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(holds(at, 512, 8));
}

// STANDIN_DEVICES=3 STANDIN_MEMORY=64MiB
TEST_CASE("there are as many devices as asked for, each with its own memory", "[.devices]") {
  OK(DRIVER(cuInit)(0));
  int count = 0;
  OK(DRIVER(cuDeviceGetCount)(&count));
  REQUIRE(count == 3);
  size_t total = 0;
  OK(DRIVER(cuDeviceTotalMem_v2)(&total, 2));
  CHECK(total == 64 << 20);
  int device = 0;
  CHECK(DRIVER(cuDeviceGet)(&device, 3) == CUDA_ERROR_INVALID_DEVICE);
  CUdeviceptr at[3] = {};
  for (int i = 0; i < 3; ++i) {
    Primary primary(i);
    at[i] = allocate(60 << 20);
    CHECK(used(i) == 60 << 20);
    OK(DRIVER(cuMemsetD8_v2)(at[i], static_cast<unsigned char>(i), 512));
    OK(DRIVER(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at[i]));
    CHECK(device == i);
  }
  CHECK(used(0) == 0);
}

// STANDIN_AUTO=1
TEST_CASE("work completes by itself where it is told so", "[.auto]") {
  Primary primary;
  const CUdeviceptr at = allocate(512);
  const CUstream stream = new_stream();
  fill(stream, at, 512, 8);
  CHECK(holds(at, 512, 8));
  int flag = 0;
  OK(launch("spin", stream, &flag));
  fill(stream, at, 512, 9);
  CHECK(holds(at, 512, 8));  // behind a kernel that waits
  CHECK(DRIVER(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
  flag = 1;
  OK(DRIVER(cuStreamQuery)(stream));
  CHECK(holds(at, 512, 9));
}

// STANDIN_DELAY_MS=200
TEST_CASE("work that is old enough is done when asked for", "[.delay]") {
  Primary primary;
  const CUdeviceptr at = allocate(512);
  const CUstream stream = new_stream();
  fill(stream, at, 512, 8);
  CHECK(DRIVER(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  OK(DRIVER(cuStreamQuery)(stream));
  CHECK(holds(at, 512, 8));
}
