// Makes the real CUDA runtime look up what it needs, and verifies that the stand-in has all of it.
//
// Usage: cudart_lookups LIBCUDART.SO    built with STATIC_CUDART: the runtime in this program
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace {

#ifdef STATIC_CUDART
extern "C" int cudaGetDeviceCount(int* count);

bool call_runtime(const char*) {
  int count = 0;
  cudaGetDeviceCount(&count);
  return true;
}
#else
bool call_runtime(const char* path) {
  if (path == nullptr || access(path, R_OK) != 0) std::exit(77);  // skipped
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return false;
  }
  int count = 0;
  // It does not start here, since the stand-in has no private tables; what it asks for comes first.
  reinterpret_cast<int (*)(int*)>(dlsym(library, "cudaGetDeviceCount"))(&count);
  return true;
}
#endif

int driver_version() {
  int version = 0;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 0;
  reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"))(&version);
  return version;
}

/// Counts the look-ups in the log; prints those that led nowhere, less what came after the driver.
int count_missing(const std::string& log, int* asked) {
  const int known = driver_version();
  std::ifstream lines(log);
  int missing = 0;
  for (std::string line; std::getline(lines, line); ++*asked) {
    std::istringstream words(line);
    std::string name;
    int version = 0;
    std::string flags;
    std::string entry;
    std::string symbol;
    words >> name >> version >> flags >> entry >> symbol;
    // The empty name is asked for to see whether look-ups work at all.
    if (symbol != "-" || name == "\"\"" || version > known) continue;
    std::printf("missing: %s\n", line.c_str());
    ++missing;
  }
  return missing;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string log = "lookups-" + std::to_string(getpid()) + ".txt";
  setenv("STANDIN_LOG_LOOKUPS", log.c_str(), 1);
  if (!call_runtime(count > 1 ? arguments[1] : nullptr)) return 2;
  int asked = 0;
  const int missing = count_missing(log, &asked);
  unlink(log.c_str());
  std::printf("%d look-ups, %d without an answer\n", asked, missing);
  return missing == 0 && asked > 300 ? 0 : 1;
}
