#include "tests/driver/reentry.hpp"

#include <dlfcn.h>

#include <cstdio>

#include "tests/driver/settings.hpp"

namespace standin {
namespace {

bool complain(const char* what, const char* name) {
  std::fprintf(stderr, "standin: within cuInit %s %s\n", what, name);
  return false;
}

/// An entry as everybody but the driver finds it: another library may have put its own in front.
template <class Entry>
Entry* seen(const char* name, Entry* own) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  return found == nullptr ? own : reinterpret_cast<Entry*>(found);
}
#define SEEN(name) seen(#name, &::name)

template <class Entry>
bool finds_itself(const char* name, Entry* own) {
  static void* const self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = self == nullptr ? nullptr : dlsym(self, name);
  if (found == nullptr || found == reinterpret_cast<void*>(own)) return true;  // null: too new
  return complain("finds another's", name);
}

bool gave(const char* name, CUresult result, CUresult wanted) {
  return result == wanted || complain("got a wrong answer from", name);
}
#define GAVE(wanted, name, ...) gave(#name, SEEN(name)(__VA_ARGS__), wanted)

bool look_up() {
  void* found = nullptr;
  return finds_itself("cuMemAlloc_v2", &::cuMemAlloc_v2) &&
         finds_itself("cuMemFreeAsync", &::cuMemFreeAsync) &&
         finds_itself("cuGetProcAddress_v2", &::cuGetProcAddress_v2) &&
         (settings().version < 12000 ||
          GAVE(CUDA_SUCCESS, cuGetProcAddress_v2, "cuMemAlloc", &found, 3020, 0, nullptr));
}

/// A block through each door, taken, or refused since there is no driver yet.
bool allocate(CUresult wanted) {
  CUdeviceptr one = 0;
  CUdeviceptr other = 0;
  std::size_t free = 0;
  return GAVE(wanted, cuMemGetInfo_v2, &free, nullptr) && GAVE(wanted, cuMemAlloc_v2, &one, 4096) &&
         GAVE(wanted, cuMemAllocAsync, &other, 4096, nullptr) &&
         GAVE(wanted, cuMemFreeAsync, other, nullptr) && GAVE(wanted, cuMemFree_v2, one);
}

bool allocate_in_context() {
  CUcontext context = nullptr;
  if (::cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return false;
  ::cuCtxPushCurrent_v2(context);
  const bool well = allocate(CUDA_SUCCESS);
  ::cuCtxSynchronize();  // the pool gives back what was freed
  ::cuCtxPopCurrent_v2(&context);
  return GAVE(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2, 0) && well;
}

}  // namespace

CUresult reenter(bool usable) {
  if (!settings().reenter) return CUDA_SUCCESS;
  const bool well =
      look_up() && (usable ? allocate_in_context() : allocate(CUDA_ERROR_NOT_INITIALIZED));
  return well ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

}  // namespace standin
