// The functions put in the place of the driver's: what they are called, how each begins, and which
// belongs to which real entry.
#pragma once

#include "shim/driver.hpp"
#include "shim/process.hpp"

/// Marks a definition as one of the library's exported functions (exports.map lists them all).
#define FRAGSHIM_EXPORT extern "C" __attribute__((visibility("default")))

#define FRAGSHIM_DECLARE(name, since, parameters) FRAGSHIM_EXPORT CUresult CUDAAPI name parameters;
FRAGSHIM_HOOKED(FRAGSHIM_DECLARE)
#undef FRAGSHIM_DECLARE

/// First line of a hook that may be called with no driver or with one that lacks the entry:
/// names the table `real`, or returns the error a caller of the driver would understand.
#define FRAGSHIM_REAL(name)                                    \
  const ::fragshim::Driver* const real = ::fragshim::driver(); \
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;                \
  if (!real->name) return CUDA_ERROR_NOT_FOUND

/// First line of nearly every hook: FRAGSHIM_REAL, and straight on to the driver with these
/// arguments where the shim stands aside (mode off, or the child of a process that used CUDA).
#define FRAGSHIM_ENTER(name, ...) \
  FRAGSHIM_REAL(name);            \
  if (::fragshim::passing_through()) return real->name(__VA_ARGS__)

namespace fragshim {

/// Our function for an entry of the real driver as dlsym gives it; null if that is not hooked, is
/// null, or no driver is loaded. Takes no lock.
void* hook_for(const void* real_entry) noexcept;

}  // namespace fragshim
