// A small user of the driver API, which finds it at run time as most programs do.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace driver_user {

/// An entry of libcuda.so.1. A program that asks for one that is not there ends with status 3.
template <typename Function>
Function entry(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = driver ? dlsym(driver, name) : nullptr;
  if (!found) {
    std::fprintf(stderr, "no %s\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function>(found);
}

/// Ends the program with status 4 where a call did not give what it must.
inline void expect(CUresult result, CUresult wanted, const char* what) {
  if (result == wanted) return;
  std::fprintf(stderr, "%s gave %d\n", what, static_cast<int>(result));
  std::exit(4);
}

inline CUresult allocate(CUdeviceptr* address, std::size_t size) {
  static const auto call = entry<CUresult (*)(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2");
  return call(address, size);
}

inline CUresult release(CUdeviceptr address) {
  static const auto call = entry<CUresult (*)(CUdeviceptr)>("cuMemFree_v2");
  return call(address);
}

inline CUresult allocate_on(CUstream stream, CUdeviceptr* address, std::size_t size) {
  static const auto call =
      entry<CUresult (*)(CUdeviceptr*, std::size_t, CUstream)>("cuMemAllocAsync");
  return call(address, size, stream);
}

inline CUresult release_on(CUstream stream, CUdeviceptr address) {
  static const auto call = entry<CUresult (*)(CUdeviceptr, CUstream)>("cuMemFreeAsync");
  return call(address, stream);
}

/// A stream that waits for none of the others.
inline CUstream new_stream() {
  CUstream stream = nullptr;
  const auto create = entry<CUresult (*)(CUstream*, unsigned)>("cuStreamCreate");
  expect(create(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS, "cuStreamCreate");
  return stream;
}

/// Makes the primary context of the first GPU current on this thread.
inline void begin() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  expect(entry<CUresult (*)(unsigned)>("cuInit")(0), CUDA_SUCCESS, "cuInit");
  expect(entry<CUresult (*)(CUdevice*, int)>("cuDeviceGet")(&device, 0), CUDA_SUCCESS, "device");
  expect(entry<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&context, device),
         CUDA_SUCCESS, "retain");
  expect(entry<CUresult (*)(CUcontext)>("cuCtxSetCurrent")(context), CUDA_SUCCESS, "set");
}

/// Takes a block through each door, and gives both back.
inline void use_both_doors(CUstream stream) {
  CUdeviceptr one = 0;
  CUdeviceptr other = 0;
  expect(allocate(&one, 4096), CUDA_SUCCESS, "allocate");
  expect(allocate_on(stream, &other, 4096), CUDA_SUCCESS, "allocate_on");
  expect(release_on(stream, other), CUDA_SUCCESS, "release_on");
  expect(release(one), CUDA_SUCCESS, "release");
}

}  // namespace driver_user
