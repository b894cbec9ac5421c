// A small user of the driver API, found at run time as most programs do. One word says how its life
// goes: plain, kill (ends itself in the middle), fork (before CUDA; parent and child both use it),
// oom (asks for more than there is), vanish (removes its working directory).
#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Function>
Function entry(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = driver ? dlsym(driver, name) : nullptr;
  if (!found) {
    std::fprintf(stderr, "use_cuda: no %s\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function>(found);
}

void expect(CUresult result, CUresult wanted, const char* what) {
  if (result == wanted) return;
  std::fprintf(stderr, "use_cuda: %s gave %d\n", what, static_cast<int>(result));
  std::exit(4);
}

void begin() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  expect(entry<CUresult (*)(unsigned)>("cuInit")(0), CUDA_SUCCESS, "cuInit");
  expect(entry<CUresult (*)(CUdevice*, int)>("cuDeviceGet")(&device, 0), CUDA_SUCCESS, "device");
  expect(entry<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&context, device),
         CUDA_SUCCESS, "retain");
  expect(entry<CUresult (*)(CUcontext)>("cuCtxSetCurrent")(context), CUDA_SUCCESS, "set");
}

void allocate_and_free(int times) {
  const auto allocate = entry<CUresult (*)(CUdeviceptr*, size_t)>("cuMemAlloc_v2");
  const auto release = entry<CUresult (*)(CUdeviceptr)>("cuMemFree_v2");
  for (int i = 0; i < times; ++i) {
    CUdeviceptr address = 0;
    expect(allocate(&address, 1 << 20), CUDA_SUCCESS, "cuMemAlloc");
    expect(release(address), CUDA_SUCCESS, "cuMemFree");
  }
}

void run_out() {
  const auto allocate = entry<CUresult (*)(CUdeviceptr*, size_t)>("cuMemAlloc_v2");
  CUdeviceptr address = 0;
  expect(allocate(&address, size_t{1} << 50), CUDA_ERROR_OUT_OF_MEMORY, "a petabyte");
}

void leave_no_folder() {
  char folder[4096];
  if (!getcwd(folder, sizeof folder) || rmdir(folder) != 0) std::perror("use_cuda: rmdir");
}

}  // namespace

int main(int argc, char** argv) {
  const char* const life = argc > 1 ? argv[1] : "plain";
  pid_t child = -1;
  if (std::strcmp(life, "fork") == 0) child = fork();
  begin();
  allocate_and_free(100);
  if (std::strcmp(life, "kill") == 0) raise(SIGKILL);
  if (std::strcmp(life, "oom") == 0) run_out();
  if (std::strcmp(life, "vanish") == 0) leave_no_folder();
  usleep(20000);  // longer than the interval of the tests
  allocate_and_free(100);
  if (child > 0) waitpid(child, nullptr, 0);
  return 0;
}
