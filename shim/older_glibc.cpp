// What newer releases of the C library have and older ones have not, for what of ours asks for it:
// the library runs with releases older than the one it was built with. See older_glibc.S.
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cstddef>

extern "C" {

// Before 2.33 these were inline functions, which called the versioned ones.
int __fxstat(int version, int file, struct stat* out) noexcept;          // NOLINT: glibc's name
int __lxstat(int version, const char* path, struct stat* out) noexcept;  // NOLINT: glibc's name

#if defined(__x86_64__)
static constexpr int stat_version = 1;
#else
static constexpr int stat_version = 0;
#endif

int fstat(int file, struct stat* out) noexcept { return __fxstat(stat_version, file, out); }
int lstat(const char* path, struct stat* out) noexcept { return __lxstat(stat_version, path, out); }

// 2.32: whether atomic operations may be plain ones. Never, here.
extern char __libc_single_threaded;  // NOLINT: glibc's name
char __libc_single_threaded = 0;

#ifdef DLFO_STRUCT_HAS_EH_DBASE
namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* out;
};

int look_in(dl_phdr_info* object, std::size_t, void* data) {
  const auto& search = *static_cast<const Search*>(data);
  bool inside = false;
  void* unwind_table = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const ElfW(Addr) start = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) unwind_table = reinterpret_cast<void*>(start);
    if (part.p_type != PT_LOAD || search.address - start >= part.p_memsz) continue;
    inside = true;
    search.out->dlfo_map_start = reinterpret_cast<void*>(start);
    search.out->dlfo_map_end = reinterpret_cast<void*>(start + part.p_memsz);
  }
  search.out->dlfo_eh_frame = unwind_table;
  return inside && unwind_table != nullptr ? 1 : 0;
}

}  // namespace

// 2.35: where the unwinder of g++ 12 and later finds the table of a function that throws.
int _dl_find_object(void* address, dl_find_object* out) noexcept {
  Search search{reinterpret_cast<ElfW(Addr)>(address), out};
  return dl_iterate_phdr(look_in, &search) == 1 ? 0 : -1;
}
#endif
}
