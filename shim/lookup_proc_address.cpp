// cuGetProcAddress in both its forms. cudart asks for everything through it, and for itself first:
// cuGetProcAddress at version 11030 is the form with four arguments, at 12000 the one with five.
#include <array>
#include <string_view>

#include "shim/hooks.hpp"
#include "shim/published.hpp"

namespace fragshim {
namespace {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a term of the sum below.
#define FRAGSHIM_ONE(...) +1
constexpr std::size_t count = 0 FRAGSHIM_HOOKED(FRAGSHIM_ONE);
#undef FRAGSHIM_ONE

/// A hooked entry as cuGetProcAddress gives it, and our function for it. For Linux drivers it is
/// the one that dlsym gives; WSL2's libcuda.so.1 forwards to another library, whose it is.
struct Entry {
  void* real;
  void* hook;
};
using Entries = std::array<Entry, count>;
constinit PublishedInPlace<Entries> entries;

void* ask(const Driver& real, std::string_view name, int since) {
  constexpr std::string_view per_thread = "_ptsz";
  const bool ptsz = name.ends_with(per_thread);
  if (ptsz) name.remove_suffix(per_thread.size());
  if (name.ends_with("_v2")) name.remove_suffix(3);
  std::array<char, 64> symbol{};  // longer than any name of the list; the copy ends in a zero
  name.copy(symbol.data(), symbol.size() - 1);
  const cuuint64_t flags = ptsz ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0;
  void* entry = nullptr;
  const CUresult result =
      real.cuGetProcAddress_v2
          ? real.cuGetProcAddress_v2(symbol.data(), &entry, since, flags, nullptr)
          : real.cuGetProcAddress(symbol.data(), &entry, since, flags);
  return result == CUDA_SUCCESS ? entry : nullptr;
}

const Entries* known_entries(const Driver& real) {
  if (const Entries* const known = entries.get()) return known;
  return entries.make([&real](Entries& made) {
    Entry* row = made.data();
#define FRAGSHIM_ROW(name, since, parameters) \
  *row++ = {real.name ? ask(real, #name, since) : nullptr, reinterpret_cast<void*>(&::name)};
    FRAGSHIM_HOOKED(FRAGSHIM_ROW)
#undef FRAGSHIM_ROW
  });
}

/// Puts our function in the place of a hooked entry; leaves every other answer alone.
void swap(const Driver& real, CUresult result, void** out) {
  if (result != CUDA_SUCCESS || !out || !*out) return;
  if (void* const hook = hook_for(*out)) {
    *out = hook;
    return;
  }
  const Entries* const known = known_entries(real);
  if (!known) return;
  for (const Entry& entry : *known) {
    if (entry.real == *out) {
      *out = entry.hook;
      return;
    }
  }
}

}  // namespace
}  // namespace fragshim

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** out, int version, cuuint64_t flags) {
  FRAGSHIM_ENTER(cuGetProcAddress, symbol, out, version, flags);
  const CUresult result = real->cuGetProcAddress(symbol, out, version, flags);
  fragshim::swap(*real, result, out);
  return result;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** out, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  FRAGSHIM_ENTER(cuGetProcAddress_v2, symbol, out, version, flags, status);
  const CUresult result = real->cuGetProcAddress_v2(symbol, out, version, flags, status);
  fragshim::swap(*real, result, out);
  return result;
}
