// What lies behind the forwarding driver: the functions that WSL2's libcuda.so.1 hands out.
#include <cstddef>
#include <cstring>

using Result = int;

#ifdef FORWARDING_OLD
constexpr bool knows_five = false;
#else
constexpr bool knows_five = true;
#endif

extern "C" {

Result cuInit(unsigned int) { return 0; }
Result cuMemAlloc_v2(unsigned long long* out, std::size_t) {
  *out = 0x7000;
  return 0;
}
Result cuMemAlloc(unsigned int*, unsigned int) { return 801; }  // the 32-bit form

Result cuGetProcAddress(const char* symbol, void** out, int version, unsigned long long flags);
Result cuGetProcAddress_v2(const char* symbol, void** out, int version, unsigned long long,
                           int* status) {
  if (status) *status = 1;
  if (!symbol || !out) return 1;
  const auto is = [&](const char* name) { return std::strcmp(symbol, name) == 0; };
  *out = nullptr;
  if (is("cuInit")) *out = reinterpret_cast<void*>(&cuInit);
  if (is("cuMemAlloc")) {
    *out = version >= 3020 ? reinterpret_cast<void*>(&cuMemAlloc_v2)
                           : reinterpret_cast<void*>(&cuMemAlloc);
  }
  if (is("cuGetProcAddress")) {
    *out = knows_five && version >= 12000 ? reinterpret_cast<void*>(&cuGetProcAddress_v2)
                                          : reinterpret_cast<void*>(&cuGetProcAddress);
  }
  if (status) *status = *out ? 0 : 1;
  return *out ? 0 : 500;
}

Result cuGetProcAddress(const char* symbol, void** out, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, out, version, flags, nullptr);
}
}
