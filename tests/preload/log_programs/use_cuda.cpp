// A small user of the driver API, found at run time as most programs do. One word says how its life
// goes: plain, kill (ends itself in the middle), fork (before CUDA; parent and child both use it),
// oom (asks for more than there is), vanish (removes its working directory), pinned (holds host
// memory; two frees of it are tried), override (sets PyTorch's allocator itself).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

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

void* pin_host_memory() {
  void* host = nullptr;
  expect(entry<CUresult (*)(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&host, 3 << 20, 0),
         CUDA_SUCCESS, "cuMemHostAlloc");
  return host;
}

void free_host_memory(void* host, CUresult wanted) {
  expect(entry<CUresult (*)(void*)>("cuMemFreeHost")(host), wanted, "cuMemFreeHost");
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
  const bool pinned = std::strcmp(life, "pinned") == 0;
  void* const host = pinned ? pin_host_memory() : nullptr;
  if (pinned) free_host_memory(host, CUDA_ERROR_UNKNOWN);  // as the test makes the driver answer
  usleep(20000);                                           // longer than the interval of the tests
  allocate_and_free(100);
  if (pinned) {
    free_host_memory(host, CUDA_SUCCESS);
    usleep(20000);
    allocate_and_free(100);
  }
  if (child > 0) waitpid(child, nullptr, 0);
  return 0;
}
