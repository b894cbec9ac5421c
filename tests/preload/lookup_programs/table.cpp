// `lookup_table NAME...` looks every name up in libcuda.so.1 in every way there is, and prints a
// line for each answer. Two runs, with and without our library, are then compared.
#include <dlfcn.h>

#include <cstdio>
#include <set>
#include <string>

#include "tests/preload/lookup_programs/owner.hpp"

using fragshim::test::owner;

namespace {

using Result = int;
using ByFour = Result(const char*, void**, int, unsigned long long);
using ByFive = Result(const char*, void**, int, unsigned long long, int*);

constexpr int versions[] = {0,     2000,  2020,  3020,  4000,  4010,  6000,  7000,
                            10000, 10010, 11000, 11020, 11030, 11070, 12000, 12020,
                            12030, 12050, 12080, 13000, 13010, 99000};

/// The name that cuGetProcAddress knows: without _v2, _ptsz and the like.
std::string base_name(std::string name) {
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    if (name.size() > 5 && name.compare(name.size() - 5, 5, suffix) == 0)
      name.resize(name.size() - 5);
  }
  const auto at = name.rfind("_v");
  const bool numbered =
      at != std::string::npos && name.find_first_not_of("0123456789", at + 2) == std::string::npos;
  return numbered ? name.substr(0, at) : name;
}

void ask(ByFour* four, ByFive* five, const char* symbol, int version, unsigned long long flags) {
  const char* const shown = symbol ? symbol : "(null)";
  if (four) {
    void* out = nullptr;
    const Result result = four(symbol, &out, version, flags);
    std::printf("four %s %d %llu %d %s\n", shown, version, flags, result, owner(out).c_str());
  }
  if (!five) return;
  for (const bool with_status : {false, true}) {
    void* out = nullptr;
    int status = -7;
    const Result result = five(symbol, &out, version, flags, with_status ? &status : nullptr);
    std::printf("five %s %d %llu %d %d %s\n", shown, version, flags, result, status,
                owner(out).c_str());
  }
}

}  // namespace

int main(int count, char** arguments) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (!driver) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  std::set<std::string> names{"", "cuNoSuchName"};
  for (int i = 1; i < count; ++i) {
    std::printf("dlsym %s %s\n", arguments[i], owner(dlsym(driver, arguments[i])).c_str());
    names.insert(base_name(arguments[i]));
    names.insert(arguments[i]);
  }
  auto* four = reinterpret_cast<ByFour*>(dlsym(driver, "cuGetProcAddress"));
  auto* five = reinterpret_cast<ByFive*>(dlsym(driver, "cuGetProcAddress_v2"));
  for (const std::string& name : names) {
    for (const int version : versions) {
      for (const unsigned long long flags : {0, 1, 2, 3}) {
        ask(four, five, name.c_str(), version, flags);
      }
    }
  }
  // As cudart goes on: through what cuGetProcAddress gave for itself.
  void* again = nullptr;
  if (five && five("cuGetProcAddress", &again, 12000, 0, nullptr) == 0) {
    ask(nullptr, reinterpret_cast<ByFive*>(again), "cuMemAlloc", 3020, 0);
  }
  if (four && four("cuGetProcAddress", &again, 11030, 0) == 0) {
    ask(reinterpret_cast<ByFour*>(again), nullptr, "cuMemAlloc", 3020, 0);
  }
  ask(four, five, nullptr, 12000, 0);
  if (four) std::printf("four nowhere %d\n", four("cuInit", nullptr, 12000, 0));
  if (five) std::printf("five nowhere %d\n", five("cuInit", nullptr, 12000, 0, nullptr));
}
