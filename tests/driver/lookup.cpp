// cuGetProcAddress in both its forms, by the table of all entries.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/driver/call.hpp"
#include "tests/driver/settings.hpp"

namespace standin {
namespace entries {

// Only the addresses matter here, so every entry is declared alike, under a name of its own.
#define ENTRY(base, version, stream, symbol) extern "C" int entry_##symbol() __asm__(#symbol);
#include "tests/driver/symbols.def"
#undef ENTRY

}  // namespace entries

namespace {

enum Form { plain, ptsz };

struct Entry {
  int version;
  Form form;
  const char* symbol;
  void* address;
};
using Table = std::unordered_map<std::string_view, std::vector<Entry>>;

const Table& table() {
  static const Table& all = *[] {
    auto* made = new Table;
#define ENTRY(base, version, stream, symbol) \
  (*made)[#base].push_back(                  \
      {version, stream, #symbol, reinterpret_cast<void*>(entries::entry_##symbol)});
#include "tests/driver/symbols.def"
#undef ENTRY
    return made;
  }();
  return all;
}

/// The newest form of a name that version knows; null if there is none.
const Entry* newest(const std::vector<Entry>& forms, int version, Form form) {
  const Entry* best = nullptr;
  for (const Entry& candidate : forms) {
    if (candidate.form != form || candidate.version > version) continue;
    if (candidate.version > settings().version) continue;
    if (best == nullptr || candidate.version > best->version) best = &candidate;
  }
  return best;
}

constexpr cuuint64_t per_thread_flag = 2;

const Entry* find(const char* name, int version, cuuint64_t flags, bool* known) {
  const auto found = table().find(name);
  *known = false;
  if (found == table().end()) return nullptr;
  *known = std::any_of(found->second.begin(), found->second.end(),
                       [](const Entry& e) { return e.version <= settings().version; });
  const Entry* entry = nullptr;
  if ((flags & per_thread_flag) != 0) entry = newest(found->second, version, ptsz);
  return entry != nullptr ? entry : newest(found->second, version, plain);
}

void log_lookup(const char* name, int version, cuuint64_t flags, const char* which,
                const Entry* entry) {
  const std::string& path = settings().lookup_log;
  if (path.empty()) return;
  static std::mutex& mutex = *new std::mutex;
  const Lock lock(mutex);
  if (std::FILE* file = std::fopen(path.c_str(), "ae")) {
    std::fprintf(file, "%s %d %llu %s %s\n", *name == 0 ? "\"\"" : name, version,
                 static_cast<unsigned long long>(flags), which,
                 entry == nullptr ? "-" : entry->symbol);
    std::fclose(file);
  }
}

CUresult look_up(const char* which, const char* name, void** out, int version, cuuint64_t flags,
                 bool* known) {
  *known = false;
  if (name == nullptr || out == nullptr || flags > per_thread_flag) return CUDA_ERROR_INVALID_VALUE;
  const Entry* entry = find(name, version, flags, known);
  log_lookup(name, version, flags, which, entry);
  *out = entry == nullptr ? nullptr : entry->address;
  return entry == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace
}  // namespace standin

extern "C" {

CUresult CUDAAPI cuGetProcAddress(const char* name, void** out, int version, cuuint64_t flags) {
  return standin::entry(
      "cuGetProcAddress",
      [&] {
        bool known = false;
        return standin::look_up("cuGetProcAddress", name, out, version, flags, &known);
      },
      false);
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* name, void** out, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  return standin::entry(
      "cuGetProcAddress_v2",
      [&] {
        bool known = false;
        const CUresult result =
            standin::look_up("cuGetProcAddress_v2", name, out, version, flags, &known);
        if (status != nullptr) {
          *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS
                    : known                ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        }
        return result;
      },
      false);
}

CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid*) {
  if (table == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
