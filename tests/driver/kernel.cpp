// Kernels without code: the image "standin" has three built-in ones.
//
//   fill(CUdeviceptr at, size_t size, unsigned char value)
//   verify(CUdeviceptr at, size_t size, unsigned char value, unsigned* wrong)   adds the number of
//       bytes that are not `value` to *wrong, in host memory
//   spin(const int* flag)   waits until *flag, in host memory, is not zero
#include <unistd.h>

#include <cstring>

#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"
#include "tests/driver/transfer.hpp"

namespace standin {
namespace {

using fragshim::Access;

enum class Kernel { fill, verify, spin };
constexpr const char* kernel_names[] = {"fill", "verify", "spin"};
constexpr const char* image_name = "standin";

int the_module;
int the_functions[3];

template <class Value>
Value argument(void** parameters, int index) {
  Value value;
  std::memcpy(&value, parameters[index], sizeof value);
  return value;
}

CUresult make_fill(const Stream& stream, void** parameters, Work* work) {
  const auto at = argument<CUdeviceptr>(parameters, 0);
  const auto size = argument<size_t>(parameters, 1);
  const auto value = argument<unsigned char>(parameters, 2);
  const CUresult verdict = add_touch(stream, at, size, Access::write, work);
  set_body(stream, work,
           [at, size, value] { std::memset(reinterpret_cast<void*>(at), value, size); });
  return verdict;
}

CUresult make_verify(const Stream& stream, void** parameters, Work* work) {
  const auto at = argument<CUdeviceptr>(parameters, 0);
  const auto size = argument<size_t>(parameters, 1);
  const auto value = argument<unsigned char>(parameters, 2);
  auto* wrong = argument<unsigned*>(parameters, 3);
  const CUresult verdict = add_touch(stream, at, size, Access::read, work);
  set_body(stream, work, [at, size, value, wrong] {
    const auto* bytes = reinterpret_cast<const unsigned char*>(at);
    unsigned count = 0;
    for (size_t i = 0; i < size; ++i) count += bytes[i] != value ? 1 : 0;
    __atomic_fetch_add(wrong, count, __ATOMIC_RELAXED);
  });
  return verdict;
}

CUresult make_spin(void** parameters, Work* work) {
  const auto* flag = argument<const int*>(parameters, 0);
  work->ready = [flag] { return __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 0; };
  work->run = [ready = work->ready] {
    while (!ready()) usleep(50);
  };
  return CUDA_SUCCESS;
}

CUresult launch(Stream& stream, CUfunction function, void** parameters) {
  const auto* own = reinterpret_cast<const int*>(function);
  if (own < the_functions || own >= the_functions + 3) return CUDA_ERROR_INVALID_HANDLE;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  CUresult verdict = CUDA_SUCCESS;
  switch (static_cast<Kernel>(own - the_functions)) {
    case Kernel::fill:
      verdict = make_fill(stream, parameters, &work);
      break;
    case Kernel::verify:
      verdict = make_verify(stream, parameters, &work);
      break;
    case Kernel::spin:
      verdict = make_spin(parameters, &work);
      break;
  }
  return verdict == CUDA_SUCCESS ? submit(stream, std::move(work)) : verdict;
}

}  // namespace
}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return context_entry("cuModuleLoadData", [&](Context&) {
    if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (std::strcmp(static_cast<const char*>(image), image_name) != 0) {
      return CUDA_ERROR_INVALID_IMAGE;
    }
    *module = reinterpret_cast<CUmodule>(&the_module);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return context_entry("cuModuleUnload", [&](Context&) {
    return module == reinterpret_cast<CUmodule>(&the_module) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return context_entry("cuModuleGetFunction", [&](Context&) {
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (module != reinterpret_cast<CUmodule>(&the_module)) return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < 3; ++i) {
      if (std::strcmp(name, kernel_names[i]) != 0) continue;
      *function = reinterpret_cast<CUfunction>(&the_functions[i]);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}

}  // extern "C"

STANDIN_STREAM_ENTRY(cuLaunchKernel, _ptsz,
                     (CUfunction function, unsigned int, unsigned int, unsigned int, unsigned int,
                      unsigned int, unsigned int, unsigned int, CUstream stream, void** parameters,
                      void**),
                     return launch(on, function, parameters);)
