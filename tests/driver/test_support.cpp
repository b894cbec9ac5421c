#include "tests/driver/test_support.hpp"

#include <algorithm>

namespace standin_test {

void* find(const char* name) {
  static void* const library = dlopen(STANDIN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, name);
}

unsigned long long hazards() {
  return reinterpret_cast<unsigned long long (*)()>(find("standin_hazards"))();
}

unsigned long long used(int device) {
  return reinterpret_cast<unsigned long long (*)(int)>(find("standin_used"))(device);
}

unsigned long long pending(int device) {
  return reinterpret_cast<unsigned long long (*)(int)>(find("standin_pending"))(device);
}

Primary::Primary(int device) : device_(device) {
  REQUIRE(DRIVER(cuInit)(0) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  REQUIRE(DRIVER(cuDevicePrimaryCtxRetain)(&context, device) == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
}

Primary::~Primary() {
  DRIVER(cuDevicePrimaryCtxRelease_v2)(device_);
  DRIVER(cuCtxSetCurrent)(nullptr);
}

CUcontext new_context() {
  // Not every cuda.h declares this form.
  using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
  CUcontext context = nullptr;
  REQUIRE(reinterpret_cast<Create>(find("cuCtxCreate_v2"))(&context, 0, 0) == CUDA_SUCCESS);
  return context;
}

CUdeviceptr allocate(std::size_t size) {
  CUdeviceptr address = 0;
  REQUIRE(DRIVER(cuMemAlloc_v2)(&address, size) == CUDA_SUCCESS);
  return address;
}

void release(CUdeviceptr address) { OK(DRIVER(cuMemFree_v2)(address)); }

CUdeviceptr allocate_on(CUstream stream, std::size_t size) {
  CUdeviceptr address = 0;
  REQUIRE(DRIVER(cuMemAllocAsync)(&address, size, stream) == CUDA_SUCCESS);
  return address;
}

CUstream new_stream(unsigned flags) {
  CUstream stream = nullptr;
  REQUIRE(DRIVER(cuStreamCreate)(&stream, flags) == CUDA_SUCCESS);
  return stream;
}

CUevent new_event() {
  CUevent event = nullptr;
  REQUIRE(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  return event;
}

void fill(CUstream stream, CUdeviceptr at, std::size_t size, unsigned char value) {
  REQUIRE(DRIVER(cuMemsetD8Async)(at, value, size, stream) == CUDA_SUCCESS);
}

bool holds(CUdeviceptr at, std::size_t size, unsigned char value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(at);
  return std::all_of(bytes, bytes + size, [value](unsigned char byte) { return byte == value; });
}

}  // namespace standin_test
