// A program whose host memory runs out, for fragshim alone: `no_memory once N` fails the Nth
// request that the library makes for some, `no_memory from N` that and every later one until the
// program has half its work behind it. `no_memory` prints how many requests there are. The driver's
// and the program's own succeed, so whatever goes wrong is the library's doing.
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/driver_user.hpp"

using namespace driver_user;

extern "C" {
void* __libc_malloc(std::size_t size);                 // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t size);  // NOLINT(bugprone-reserved-identifier)
}

namespace {

// Of the library; no address lies in there before main has found it.
std::uintptr_t library_begin = 0;
std::uintptr_t library_end = 0;

std::atomic<unsigned long> asked{0};
unsigned long failing = 0;            // the number of the request that fails; 0: none
std::atomic<bool> failing_on{false};  // ... and all later ones

bool refuses(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (address < library_begin || address >= library_end) return false;
  const unsigned long number = ++asked;
  if (number != failing && !(failing_on && number > failing)) return false;
  errno = ENOMEM;
  return true;
}

int find_library(dl_phdr_info* object, std::size_t, void*) {
  if (std::strstr(object->dlpi_name, "libfragshim.so") == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_LOAD) continue;
    library_end = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz;
  }
  library_begin = object->dlpi_addr;
  return 1;
}

}  // namespace

// The library calls these, as every part of the process does.
#pragma GCC visibility push(default)
extern "C" {

void* malloc(std::size_t size) {
  return refuses(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}

void* realloc(void* memory, std::size_t size) {
  return refuses(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}

void* mmap(void* wish, std::size_t size, int protection, int flags, int file, off_t offset) {
  if (refuses(__builtin_return_address(0))) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, wish, size, protection, flags, file, offset));
}
}
#pragma GCC visibility pop

namespace {

struct Held {
  CUdeviceptr address;
  bool stream_ordered;
};

int refused = 0;

void take(std::vector<Held>* held, std::size_t size, CUstream stream, bool stream_ordered) {
  CUdeviceptr address = 0;
  const CUresult result =
      stream_ordered ? allocate_on(stream, &address, size) : allocate(&address, size);
  if (result == CUDA_SUCCESS) {
    held->push_back({address, stream_ordered});
    return;
  }
  expect(result, CUDA_ERROR_OUT_OF_MEMORY, "a request");
  ++refused;
}

void give(const std::vector<Held>& held, CUstream stream) {
  for (const Held& block : held) {
    expect(block.stream_ordered ? release_on(stream, block.address) : release(block.address),
           CUDA_SUCCESS, "a free");
  }
}

/// A capture begins and ends, or does not begin.
void capture(CUstream stream) {
  const auto begin = entry<CUresult (*)(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2");
  CUgraph graph = nullptr;
  const CUresult begun = begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  if (begun == CUDA_SUCCESS) {
    expect(entry<CUresult (*)(CUstream, CUgraph*)>("cuStreamEndCapture")(stream, &graph),
           CUDA_SUCCESS, "the end of a capture");
  } else {
    expect(begun, CUDA_ERROR_OUT_OF_MEMORY, "a capture");
    ++refused;
  }
}

/// Some of every size through both doors, of which every other block is freed at once, on another
/// stream.
std::vector<Held> work(CUstream stream, CUstream other) {
  std::vector<Held> kept;
  std::vector<Held> freed;
  int turn = 0;
  for (const std::size_t size : {std::size_t{512}, std::size_t{3} << 20, std::size_t{70} << 20}) {
    for (const bool stream_ordered : {false, true}) {
      for (int i = 0; i < 4; ++i)
        take(++turn % 2 == 0 ? &kept : &freed, size, stream, stream_ordered);
    }
  }
  give(freed, other);
  capture(stream);
  return kept;
}

void empty_pool() {
  CUmemoryPool pool = nullptr;
  const auto get = entry<CUresult (*)(CUmemoryPool*, CUdevice)>("cuDeviceGetDefaultMemPool");
  expect(get(&pool, 0), CUDA_SUCCESS, "the pool");
  expect(entry<CUresult (*)(CUmemoryPool, std::size_t)>("cuMemPoolTrimTo")(pool, 0), CUDA_SUCCESS,
         "a trim");
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  expect(entry<CUresult (*)(std::size_t*, std::size_t*)>("cuMemGetInfo_v2")(&free, &total),
         CUDA_SUCCESS, "cuMemGetInfo");
  return free;
}

/// Requests that a cache serves do not reach the driver, and a limit that was set holds.
void expect_served() {
  const auto calls = entry<unsigned long long (*)(const char*)>("standin_calls");
  const auto passed = [&] { return calls("cuMemAlloc_v2") + calls("cuMemAllocAsync"); };
  use_both_doors(nullptr);
  const unsigned long long before = passed();
  for (int i = 0; i < 8; ++i) use_both_doors(nullptr);
  if (passed() != before) std::puts("not served");
  CUdeviceptr address = 0;
  constexpr std::size_t too_much = std::size_t{3} << 30;
  expect(allocate(&address, too_much), CUDA_ERROR_OUT_OF_MEMORY, "more than the limit");
  expect(allocate_on(nullptr, &address, too_much), CUDA_ERROR_OUT_OF_MEMORY, "more than the limit");
}

/// The process may have as many addresses as it has and a little more, or again any number.
void limit_addresses(bool limited) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  if (limited) limit.rlim_cur = (pages + 64) * static_cast<std::size_t>(getpagesize());
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(5);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::string mode = arguments[1];
  dl_iterate_phdr(find_library, nullptr);
  failing = std::stoul(arguments[2]);
  failing_on = mode == "from" || mode == "ever";
  begin();
  CUstream streams[] = {new_stream(), new_stream()};
  const std::size_t before = free_memory();
  if (mode == "limit") limit_addresses(true);
  const std::vector<Held> first = work(streams[0], streams[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // for the log: another sample is due
  const std::vector<Held> second = work(streams[1], streams[0]);
  give(first, streams[1]);
  const unsigned long requests = asked;
  const int refused_first = refused;
  if (mode == "limit") limit_addresses(false);
  if (mode != "ever") {
    failing = 0;
    failing_on = false;
    give(work(streams[0], streams[0]), streams[0]);
    expect_served();
  }
  give(second, streams[0]);
  for (CUstream stream : streams) {
    entry<CUresult (*)(CUstream)>("cuStreamDestroy_v2")(stream);
  }
  expect(entry<CUresult (*)()>("cuCtxSynchronize")(), CUDA_SUCCESS, "synchronize");
  empty_pool();
  std::printf("asked %lu\nrefused %d\nrefused later %d\nmissing %lld\n", requests, refused_first,
              refused - refused_first,
              static_cast<long long>(before) - static_cast<long long>(free_memory()));
  return 0;
}
