// How the program finds our functions where it looks for the driver's. Both ways ask the real
// look-up first and swap its answer only if that is one of the real entries that are hooked: a name
// says too little (cuMemAlloc at version 2000 is the 32-bit call), an address is exact.
//
// What does not come through here: RTLD_DEEPBIND, dlvsym and dlmopen, which reach the driver past
// any preloaded library; and a program that runs setuid, for which the loader ignores LD_PRELOAD.
// Where CUDA is absent, RTLD_DEFAULT finds our exported functions all the same; called, they say
// CUDA_ERROR_NOT_INITIALIZED.
#include "shim/lookup.hpp"

#include <dlfcn.h>

#include <atomic>

#include "shim/hooks.hpp"

namespace {

using Dlsym = void* (*)(void*, const char*);

void* no_symbol(void*, const char*) { return nullptr; }

/// Whether code at `address` belongs to the driver's own library.
bool inside_driver(const void* address, const void* driver_entry) {
  Dl_info caller{};
  Dl_info driver{};
  return dladdr(address, &caller) && dladdr(driver_entry, &driver) &&
         caller.dli_fbase == driver.dli_fbase;
}

}  // namespace

extern "C" {

// Read by lookup_dlsym.S as a plain pointer; it only ever goes from null to its one value.
__attribute__((visibility("hidden"))) constinit std::atomic<Dlsym> fragshim_real_dlsym{nullptr};
static_assert(sizeof(std::atomic<Dlsym>) == sizeof(void*));

/// Finds the real dlsym. May run before any constructor and inside malloc's own start, so it
/// allocates nothing and takes no lock of ours.
__attribute__((visibility("hidden"))) Dlsym fragshim_find_dlsym() noexcept {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* const found = dlvsym(RTLD_NEXT, "dlsym", version)) {
      const auto real = reinterpret_cast<Dlsym>(found);
      fragshim_real_dlsym.store(real, std::memory_order_release);
      return real;
    }
  }
  return no_symbol;
}

/// A look-up of a cuXxx name in an explicit handle. The real look-up is the last dl* call whose
/// error a caller can see (dladdr reports none), so dlerror() speaks of it. The driver's own
/// look-ups get the real entries.
__attribute__((visibility("hidden"))) void* fragshim_lookup_explicit(void* handle, const char* name,
                                                                     const void* caller) noexcept {
  const fragshim::Driver* const real =
      fragshim::passing_through() ? nullptr : fragshim::driver_if_loaded();
  void* const found = fragshim::real_dlsym(handle, name);
  void* const hook = real ? fragshim::hook_for(found) : nullptr;
  return hook && !inside_driver(caller, found) ? hook : found;
}

}  // extern "C"

namespace fragshim {

void* real_dlsym(void* handle, const char* name) noexcept {
  const Dlsym known = fragshim_real_dlsym.load(std::memory_order_acquire);
  return (known ? known : fragshim_find_dlsym())(handle, name);
}

void* hook_for(const void* real_entry) noexcept {
  const Driver* const real = driver_if_loaded();
  if (!real || !real_entry) return nullptr;
#define FRAGSHIM_MATCH(name, ...)                                \
  if (real_entry == reinterpret_cast<const void*>(real->name)) { \
    return reinterpret_cast<void*>(&::name);                     \
  }
  FRAGSHIM_HOOKED(FRAGSHIM_MATCH)
#undef FRAGSHIM_MATCH
  return nullptr;
}

}  // namespace fragshim
