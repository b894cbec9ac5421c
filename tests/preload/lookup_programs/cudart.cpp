// Starts a CUDA runtime (the library named, or the one linked in) and then prints what it keeps of
// the driver: a line "ENTRY OWNER" for every word of its writable memory that is the address of
// a function of libcuda.so.1 or of libfragshim.so.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#ifdef CUDART_LINKED
extern "C" int cudaGetDeviceCount(int* count);
extern "C" int cudaMalloc(void** out, std::size_t size);
#endif

namespace {

int start(const char* library) {
  int count = 0;
  void* memory = nullptr;
#ifdef CUDART_LINKED
  (void)library;
  cudaGetDeviceCount(&count);
  cudaMalloc(&memory, 64);
#else
  void* const handle = dlopen(library, RTLD_LAZY);
  if (!handle) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  reinterpret_cast<int (*)(int*)>(dlsym(handle, "cudaGetDeviceCount"))(&count);
  reinterpret_cast<int (*)(void**, std::size_t)>(dlsym(handle, "cudaMalloc"))(&memory, 64);
#endif
  return 0;
}

void print_if_entry(std::uintptr_t word) {
  Dl_info info{};
  void* const address = reinterpret_cast<void*>(word);
  if (!dladdr(address, &info) || !info.dli_sname || info.dli_saddr != address) return;
  const std::string file(info.dli_fname);
  for (const char* name : {"libcuda.so.1", "libfragshim.so"}) {
    const bool same = file.size() >= std::strlen(name) &&
                      file.compare(file.size() - std::strlen(name), std::string::npos, name) == 0;
    if (same) std::printf("%s %s\n", info.dli_sname, name);
  }
}

/// Called for every loaded object; `wanted` is its name, the program's own being empty.
int scan(dl_phdr_info* object, std::size_t, void* wanted) {
  if (std::strcmp(object->dlpi_name, static_cast<const char*>(wanted)) != 0) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_W)) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    for (std::uintptr_t at = (begin + 7) & ~std::uintptr_t{7}; at + 8 <= begin + part.p_memsz;
         at += 8) {
      print_if_entry(*reinterpret_cast<const std::uintptr_t*>(at));
    }
  }
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  std::string library(count > 1 ? arguments[1] : "");
  if (const int error = start(library.c_str())) return error;
  return dl_iterate_phdr(scan, library.data()) == 1 ? 0 : 3;
}
