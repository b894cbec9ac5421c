// A libcuda.so.1 like WSL2's: it forwards to a second library, which it asks by its own dlsym.
// With FORWARDING_OLD, a driver of before CUDA 12: cuGetProcAddress has one form only.
#include <dlfcn.h>

#include <cstddef>

using Result = int;

namespace {

template <typename Function>
Function* inner(const char* name) {
  static void* const library = dlopen("libinner.so", RTLD_LAZY);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

extern "C" {

Result cuInit(unsigned int flags) { return inner<Result(unsigned int)>("cuInit")(flags); }

Result cuMemAlloc_v2(unsigned long long* out, std::size_t size) {
  return inner<Result(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(out, size);
}

Result cuGetProcAddress(const char* symbol, void** out, int version, unsigned long long flags) {
  using Function = Result(const char*, void**, int, unsigned long long);
  return inner<Function>("cuGetProcAddress")(symbol, out, version, flags);
}

#ifndef FORWARDING_OLD
Result cuGetProcAddress_v2(const char* symbol, void** out, int version, unsigned long long flags,
                           int* status) {
  using Function = Result(const char*, void**, int, unsigned long long, int*);
  return inner<Function>("cuGetProcAddress_v2")(symbol, out, version, flags, status);
}
#endif
}
