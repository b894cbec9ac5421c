// What an allocation and its free cost the host, by size and by door. Prints one JSON object a
// case: {"case": …, "ns": median nanoseconds a pair}. Run it with and without the shim.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "cuda_check.cuh"

namespace {

constexpr int batches = 7;
constexpr int in_flight = 64;
constexpr double batch_seconds = 0.03;

double seconds_now() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

/// The median over batches of the time that `pairs_a_call` pairs take, in nanoseconds a pair. The
/// number of calls in a batch follows from how long one takes.
template <typename Function>
double pair_cost(int pairs_a_call, Function&& call) {
  for (int i = 0; i < 3; ++i) call();  // the first ones grow the heap
  CUDA(cudaDeviceSynchronize());
  long calls = 1;
  for (;; calls *= 2) {
    const double begin = seconds_now();
    for (long i = 0; i < calls; ++i) call();
    if (seconds_now() - begin > batch_seconds) break;
  }
  std::vector<double> costs;
  for (int batch = 0; batch < batches; ++batch) {
    const double begin = seconds_now();
    for (long i = 0; i < calls; ++i) call();
    costs.push_back((seconds_now() - begin) * 1e9 / (static_cast<double>(calls) * pairs_a_call));
    CUDA(cudaDeviceSynchronize());
  }
  std::nth_element(costs.begin(), costs.begin() + batches / 2, costs.end());
  return costs[batches / 2];
}

void report(const char* name, double ns) {
  std::printf("{\"case\": \"%s\", \"ns\": %.1f}\n", name, ns);
  std::fflush(stdout);
}

void one_block(const char* name, std::size_t size) {
  report(name, pair_cost(1, [size] {
           void* block = nullptr;
           CUDA(cudaMalloc(&block, size));
           CUDA(cudaFree(block));
         }));
}

/// As programs do that build up a working set and take it down: one fence can serve many frees.
void blocks_in_flight(const char* name, std::size_t size) {
  report(name, pair_cost(in_flight, [size] {
           void* blocks[in_flight];
           for (void*& block : blocks) CUDA(cudaMalloc(&block, size));
           for (void* block : blocks) CUDA(cudaFree(block));
         }));
}

void stream_ordered(const char* name, std::size_t size) {
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  report(name, pair_cost(1, [size, stream] {
           void* block = nullptr;
           CUDA(cudaMallocAsync(&block, size, stream));
           CUDA(cudaFreeAsync(block, stream));
         }));
  CUDA(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  CUDA(cudaFree(nullptr));
  cudaMemPool_t pool;
  unsigned long long keep_all = ~0ull;  // the driver's best case: a warm pool
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
  one_block("malloc_512", 512);
  one_block("malloc_1MiB", 1 << 20);
  one_block("malloc_20MiB", 20 << 20);
  blocks_in_flight("malloc_64_in_flight", 64 << 10);
  stream_ordered("async_512", 512);
  stream_ordered("async_1MiB", 1 << 20);
  stream_ordered("async_20MiB", 20 << 20);
  return 0;
}
