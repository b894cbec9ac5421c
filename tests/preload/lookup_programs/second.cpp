// A second preloaded library: overrides a function of libc and one of the driver, and reaches the
// next one with dlsym(RTLD_NEXT), as tools do. Were it found itself, it would call itself for ever.
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>

namespace {
int calls = 0;
}

extern "C" {

int second_getppid_calls() { return calls; }

pid_t getppid() noexcept {
  ++calls;
  if (calls > 1) _exit(9);
  return reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "getppid"))();
}

void* second_next_mem_get_info() {
  void* const volatile next = dlsym(RTLD_NEXT, "cuMemGetInfo_v2");  // volatile: no tail call
  return next;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  void* const next = second_next_mem_get_info();
  return next ? reinterpret_cast<int (*)(std::size_t*, std::size_t*)>(next)(free, total) : -1;
}
}
