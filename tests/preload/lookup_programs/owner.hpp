// Which loaded object an address belongs to.
#pragma once

#include <dlfcn.h>

#include <string>

namespace fragshim::test {

/// "libcuda.so.1:cuInit" for an address in a loaded object, "null" for null, "none" for any other.
inline std::string owner(const void* address) {
  if (!address) return "null";
  Dl_info info{};
  if (!dladdr(address, &info) || !info.dli_fname) return "none";
  std::string file(info.dli_fname);
  file.erase(0, file.rfind('/') + 1);
  return file + ":" + (info.dli_sname && info.dli_saddr == address ? info.dli_sname : "?");
}

}  // namespace fragshim::test
