// The stand-in, opened by its path as a program without our help would find it.
#pragma once

#include <dlfcn.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/driver/cuda_api.hpp"

namespace standin_test {

/// The entry of a name, by dlsym; null where there is none.
void* find(const char* name);

/// The stand-in's own questions.
unsigned long long hazards();
unsigned long long used(int device = 0);
unsigned long long pending(int device = 0);

/// An entry by its exported name and the type that cuda.h gives it.
#define DRIVER(name) reinterpret_cast<decltype(&::name)>(standin_test::find(#name))

/// The primary context of a device, current for as long as this lives; then reset.
class Primary {
 public:
  explicit Primary(int device = 0);
  ~Primary();

 private:
  int device_;
};

/// A context of its own, current.
CUcontext new_context();
CUdeviceptr allocate(std::size_t size);
void release(CUdeviceptr address);
CUdeviceptr allocate_on(CUstream stream, std::size_t size);
CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent new_event();
void fill(CUstream stream, CUdeviceptr at, std::size_t size, unsigned char value);
/// The bytes at an address, read without waiting for any stream.
bool holds(CUdeviceptr at, std::size_t size, unsigned char value);

/// Launches one of the built-in kernels.
template <class... Arguments>
CUresult launch(const char* name, CUstream stream, Arguments... arguments) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(DRIVER(cuModuleLoadData)(&module, "standin") == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuModuleGetFunction)(&function, module, name) == CUDA_SUCCESS);
  void* parameters[] = {&arguments...};
  return DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

#define OK(call) CHECK((call) == CUDA_SUCCESS)

}  // namespace standin_test
