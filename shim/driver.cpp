#include "shim/driver.hpp"

#include <dlfcn.h>

#include <string_view>

#include "shim/lookup.hpp"
#include "shim/published.hpp"

#define FRAGSHIM_TEXT(name) #name
#define FRAGSHIM_CHECK(name, ...)                               \
  static_assert(std::string_view(#name) == FRAGSHIM_TEXT(name), \
                "cuda.h renames " #name ": undefine that in driver.hpp");
FRAGSHIM_HOOKED(FRAGSHIM_CHECK)
FRAGSHIM_USED(FRAGSHIM_CHECK)
#undef FRAGSHIM_CHECK
#undef FRAGSHIM_TEXT

namespace fragshim {
namespace {

constinit PublishedInPlace<Driver> found;

template <typename Function>
void resolve(void* library, const char* name, Function*& entry) {
  entry = reinterpret_cast<Function*>(real_dlsym(library, name));
}

/// An absent driver is not remembered: the program may load one later.
const Driver* find(int flags) {
  // The handle is kept: the entries must stay valid.
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | flags);
  if (!library) return nullptr;
  return found.make([library](Driver& table) {
#define FRAGSHIM_RESOLVE(name, ...) resolve(library, #name, table.name);
    FRAGSHIM_HOOKED(FRAGSHIM_RESOLVE)
    FRAGSHIM_USED(FRAGSHIM_RESOLVE)
#undef FRAGSHIM_RESOLVE
  });
}

}  // namespace

const Driver* driver() noexcept {
  const Driver* const known = found.get();
  return known ? known : find(0);
}

const Driver* driver_if_loaded() noexcept {
  const Driver* const known = found.get();
  return known ? known : find(RTLD_NOLOAD);
}

}  // namespace fragshim
