// A library whose constructor runs before ours and uses the driver at once.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "tests/preload/lookup_programs/owner.hpp"

namespace {

std::string& report() {
  static auto* const text = new std::string;
  return *text;
}

__attribute__((constructor)) void start() {
  using fragshim::test::owner;
  // Ours sets this variable as it starts.
  report() += std::getenv("FRAGSHIM_HANDED_CONF") ? "late" : "early";
  void* const handle = dlopen("libcuda.so.1", RTLD_LAZY);
  report() += "\n" + owner(dlsym(handle, "cuMemAlloc_v2"));
  report() += "\n" + owner(dlsym(handle, "cuInit"));
  void* const next = dlsym(RTLD_NEXT, "cos");
  report() += next ? "\nfound" : "\nmissing";
}

}  // namespace

extern "C" const char* early_report() { return report().c_str(); }
