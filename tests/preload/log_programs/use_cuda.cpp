// A small user of the driver API, found at run time as most programs do. One word says how its life
// goes: plain, kill (ends itself in the middle), fork (before CUDA; parent and child both use it),
// oom (asks for more than there is), vanish (removes its working directory), passed (holds memory
// that passes through, pinned and managed; two frees of each are tried), override (sets PyTorch's
// allocator itself).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tests/preload/driver_user.hpp"

namespace {

using namespace driver_user;

void allocate_and_free(int times) {
  for (int i = 0; i < times; ++i) {
    CUdeviceptr address = 0;
    expect(allocate(&address, 1 << 20), CUDA_SUCCESS, "cuMemAlloc");
    expect(release(address), CUDA_SUCCESS, "cuMemFree");
  }
}

void run_out() {
  CUdeviceptr address = 0;
  expect(allocate(&address, size_t{1} << 50), CUDA_ERROR_OUT_OF_MEMORY, "a petabyte");
}

void leave_no_folder() {
  char folder[4096];
  if (!getcwd(folder, sizeof folder) || rmdir(folder) != 0) std::perror("use_cuda: rmdir");
}

/// Memory of each kind that the driver serves and the log counts.
struct Passed {
  void* pinned = nullptr;
  void* also_pinned = nullptr;
  CUdeviceptr managed = 0;
};

Passed take_passed() {
  Passed taken;
  expect(entry<CUresult (*)(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&taken.pinned,
                                                                              3 << 20, 0),
         CUDA_SUCCESS, "cuMemHostAlloc");
  expect(entry<CUresult (*)(void**, std::size_t)>("cuMemAllocHost_v2")(&taken.also_pinned, 1 << 20),
         CUDA_SUCCESS, "cuMemAllocHost");
  expect(entry<CUresult (*)(CUdeviceptr*, std::size_t, unsigned)>("cuMemAllocManaged")(
             &taken.managed, 5 << 20, CU_MEM_ATTACH_GLOBAL),
         CUDA_SUCCESS, "cuMemAllocManaged");
  return taken;
}

/// `first`: what the driver answers to the first free of each kind. What it refuses stays.
void give_passed(const Passed& taken, CUresult first) {
  const auto free_host = entry<CUresult (*)(void*)>("cuMemFreeHost");
  expect(free_host(taken.pinned), first, "cuMemFreeHost");
  expect(release(taken.managed), first, "cuMemFree of managed memory");
  if (first == CUDA_SUCCESS) expect(free_host(taken.also_pinned), first, "cuMemFreeHost");
}

/// Tools that stop, save or restore processes count on the library having no thread of its own.
void expect_one_thread() {
  int threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.exists()) ++threads;
  }
  if (threads == 1) return;
  std::fprintf(stderr, "%d threads\n", threads);
  std::exit(5);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const life = argc > 1 ? argv[1] : "plain";
  pid_t child = -1;
  if (std::strcmp(life, "fork") == 0) child = fork();
  if (std::strcmp(life, "override") == 0) {
    setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native", 1);
  }
  begin();
  allocate_and_free(100);
  if (std::strcmp(life, "kill") == 0) raise(SIGKILL);
  if (std::strcmp(life, "oom") == 0) run_out();
  if (std::strcmp(life, "vanish") == 0) leave_no_folder();
  const bool passed = std::strcmp(life, "passed") == 0;
  const Passed taken = passed ? take_passed() : Passed{};
  if (passed) give_passed(taken, CUDA_ERROR_UNKNOWN);  // as the test makes the driver answer
  usleep(20000);                                       // longer than the interval of the tests
  allocate_and_free(100);
  if (passed) {
    give_passed(taken, CUDA_SUCCESS);
    usleep(20000);
    allocate_and_free(100);
  }
  if (child > 0) waitpid(child, nullptr, 0);
  expect_one_thread();
  return 0;
}
