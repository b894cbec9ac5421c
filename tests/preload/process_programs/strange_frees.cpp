// Frees that no allocator likes, through both doors: `strange_frees CASE`. Prints the driver's
// answers, with what each was for, so that they can be compared with and without the shim.
#include <dlfcn.h>

#include <atomic>
#include <string>

#include "tests/preload/driver_user.hpp"

using namespace driver_user;

namespace {

constexpr std::size_t size = std::size_t{1} << 20;
constexpr const char* doors[] = {"cudaMalloc", "cudaMallocAsync"};

void say(const std::string& what, long answer) { std::printf("%s: %ld\n", what.c_str(), answer); }

CUresult synchronize() { return entry<CUresult (*)()>("cuCtxSynchronize")(); }

void begin_capture(CUstream stream) {
  const auto call = entry<CUresult (*)(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2");
  expect(call(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS, "begin capture");
}

CUresult end_capture(CUstream stream, CUgraph* graph) {
  return entry<CUresult (*)(CUstream, CUgraph*)>("cuStreamEndCapture")(stream, graph);
}

CUdeviceptr take(bool stream_ordered, CUstream stream) {
  CUdeviceptr address = 0;
  expect(stream_ordered ? allocate_on(stream, &address, size) : allocate(&address, size),
         CUDA_SUCCESS, "allocate");
  return address;
}

/// Writes a block and reads its last byte back; -1 where it cannot be reached.
int last_byte(CUdeviceptr address, unsigned char value) {
  unsigned char byte = 0;
  const auto fill = entry<CUresult (*)(CUdeviceptr, unsigned char, std::size_t)>("cuMemsetD8_v2");
  const auto read = entry<CUresult (*)(void*, CUdeviceptr, std::size_t)>("cuMemcpyDtoH_v2");
  const bool good = fill(address, value, size) == CUDA_SUCCESS &&
                    read(&byte, address + size - 1, 1) == CUDA_SUCCESS;
  return good ? byte : -1;
}

/// A block from before a capture, freed on the stream that is being captured. Not twice: a driver
/// of its own accepts a second cudaFreeAsync of cudaMalloc's memory, and hangs later.
void free_in_capture() {
  for (const bool stream_ordered : {false, true}) {
    const std::string door = doors[stream_ordered];
    const CUstream stream = new_stream();
    const CUdeviceptr block = take(stream_ordered, stream);
    const CUdeviceptr beside = take(stream_ordered, stream);
    expect(synchronize(), CUDA_SUCCESS, "synchronize");
    begin_capture(stream);
    say(door + " freed in a capture", release_on(stream, block));
    CUgraph graph = nullptr;
    say(door + " the capture ends", end_capture(stream, &graph));
    say(door + " the block is alive", last_byte(block, 7));
    say(door + " its neighbour is alive", last_byte(beside, 9));
    say(door + " freed after the capture", release_on(stream, block));
    say(door + " its neighbour freed", release(beside));
  }
}

/// Memory that a graph allocates and does not free: the program may, through either door.
void free_of_graph_memory() {
  const auto instantiate =
      entry<CUresult (*)(CUgraphExec*, CUgraph, unsigned long long)>("cuGraphInstantiateWithFlags");
  const auto launch = entry<CUresult (*)(CUgraphExec, CUstream)>("cuGraphLaunch");
  const CUstream stream = new_stream();
  begin_capture(stream);
  const CUdeviceptr block = take(true, stream);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  say("captured", end_capture(stream, &graph));
  say("instantiated", instantiate(&executable, graph, 0));
  for (const bool stream_ordered : {false, true}) {
    const std::string door = stream_ordered ? "cudaFreeAsync" : "cudaFree";
    say(door + " launched", launch(executable, stream));
    say(door + " synchronized", synchronize());
    say(door + " alive", last_byte(block, 5));
    say(door + " freed", stream_ordered ? release_on(new_stream(), block) : release(block));
    say(door + " freed twice", stream_ordered ? release_on(stream, block) : release(block));
    say(door + " synchronized", synchronize());
  }
  say("launched once more", launch(executable, stream));
  say("synchronized", synchronize());
}

/// Memory from before the library was there, freed through its doors.
void free_of_older_memory(const char* library) {
  const CUstream stream = new_stream();
  const CUdeviceptr older[] = {take(false, stream), take(true, stream), take(false, stream),
                               take(true, stream)};
  void* const shim = dlopen(library, RTLD_NOW);
  if (shim == nullptr) std::printf("%s\n", dlerror()), std::exit(3);
  const auto its_malloc =
      reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(dlsym(shim, "cuMemAlloc_v2"));
  const auto its_free = reinterpret_cast<CUresult (*)(CUdeviceptr)>(dlsym(shim, "cuMemFree_v2"));
  const auto its_free_async =
      reinterpret_cast<CUresult (*)(CUdeviceptr, CUstream)>(dlsym(shim, "cuMemFreeAsync"));
  CUdeviceptr served = 0;
  say("served by the library", its_malloc(&served, size));
  say("cudaFree of cudaMalloc's", its_free(older[0]));
  say("cudaFree of cudaMallocAsync's", its_free(older[1]));
  say("cudaFreeAsync of cudaMalloc's", its_free_async(older[2], stream));
  say("cudaFreeAsync of cudaMallocAsync's", its_free_async(older[3], stream));
  say("freed twice", its_free(older[0]));
  say("the library's own", its_free(served));
  say("synchronized", synchronize());
}

/// Requests that get nothing.
void nothing() {
  const CUstream stream = new_stream();
  CUdeviceptr address = 0;
  say("cudaMalloc of nothing", allocate(&address, 0));
  say("cudaMallocAsync of nothing", allocate_on(stream, &address, 0));
  say("its address", static_cast<long>(address));
  say("cudaFree of nothing", release(0));
  say("cudaFreeAsync of nothing", release_on(stream, 0));
  expect(entry<CUresult (*)(CUcontext)>("cuCtxSetCurrent")(nullptr), CUDA_SUCCESS, "set");
  say("cudaMalloc without a context", allocate(&address, size));
  say("cudaMallocAsync without a context", allocate_on(nullptr, &address, size));
}

// Waits until a word of the host's is not zero.
constexpr const char* spin_code = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 flag)
{
  .reg .u64 %at;
  .reg .u32 %value;
  .reg .pred %go;
  ld.param.u64 %at, [flag];
again:
  ld.volatile.u32 %value, [%at];
  setp.eq.u32 %go, %value, 0;
  @%go bra again;
  ret;
}
)";

/// The host's flag is set behind the frees: one that waited for the kernel would wait for ever.
/// Without the shim cudaFree does.
void free_under_a_waiting_kernel() {
  const CUstream stream = new_stream();
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  const auto load = entry<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData");
  if (load(&module, spin_code) != CUDA_SUCCESS) {  // the stand-in driver has one of its own
    expect(load(&module, "standin"), CUDA_SUCCESS, "cuModuleLoadData");
  }
  expect(entry<CUresult (*)(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction")(
             &spin, module, "spin"),
         CUDA_SUCCESS, "cuModuleGetFunction");
  void* host = nullptr;
  expect(entry<CUresult (*)(void**, std::size_t, unsigned)>("cuMemHostAlloc")(
             &host, sizeof(std::atomic<int>), CU_MEMHOSTALLOC_DEVICEMAP),
         CUDA_SUCCESS, "cuMemHostAlloc");
  auto* const flag = new (host) std::atomic<int>(0);
  const CUdeviceptr block = take(false, stream);
  const CUdeviceptr ordered = take(true, stream);
  void* arguments[] = {&host};
  using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void**, void**);
  say("launched",
      entry<Launch>("cuLaunchKernel")(spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  say("cudaFree", release(block));
  say("cudaFreeAsync", release_on(stream, ordered));
  for (int i = 0; i < 100; ++i) release(take(false, stream));
  say("the kernel waits", entry<CUresult (*)(CUstream)>("cuStreamQuery")(stream));
  flag->store(1);
  say("synchronized", synchronize());
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what hangs has said how far it came
  begin();
  if (name == "in_capture") free_in_capture();
  if (name == "graph_memory") free_of_graph_memory();
  if (name == "older" && count > 2) free_of_older_memory(arguments[2]);
  if (name == "nothing") nothing();
  if (name == "waiting_kernel") free_under_a_waiting_kernel();
  return 0;
}
