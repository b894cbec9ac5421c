// Frees memory right behind the launches that use it, on streams of every kind and from several
// threads, and verifies every byte on the device: a block handed out again too early is written
// over by its next user while its last one still reads.
//
// usage: free_after_launch ROUNDS [--sabotage]
// Prints {"rounds": …, "wrong": …, "seconds": …}; exit status 1 if any word was wrong. With
// --sabotage freed blocks are handed out again at once by the program itself: the test must find
// wrong words then, or it finds nothing at all.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_check.cuh"

namespace {

constexpr int thread_count = 2;
constexpr unsigned threads_a_block = 256;

/// Writes a pattern of this round alone; then keeps the stream busy for `delay` clocks, so that the
/// host is ahead of the device and frees what is still in use.
__global__ void fill(std::uint32_t* words, unsigned count, std::uint32_t tag, long long delay) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) words[i] = tag + i;
  const long long begin = clock64();
  while (clock64() - begin < delay) {
  }
}

__global__ void verify(const std::uint32_t* words, unsigned count, std::uint32_t tag,
                       unsigned long long* wrong) {
  const unsigned step = gridDim.x * blockDim.x;
  unsigned mistakes = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    if (words[i] != tag + i) ++mistakes;
  }
  if (mistakes != 0) atomicAdd(wrong, static_cast<unsigned long long>(mistakes));
}

enum class Door { synchronous, stream_ordered, sabotaged };

class Worker {
 public:
  Worker(int index, bool sabotage, unsigned long long* wrong)
      : sabotage_(sabotage),
        wrong_(wrong),
        random_(1234u + static_cast<unsigned>(index)),
        tag_(static_cast<std::uint32_t>(index) << 30) {
    cudaStream_t stream;
    streams_ = {cudaStreamLegacy, cudaStreamPerThread};
    for (int i = 0; i < 2; ++i) {
      CUDA(cudaStreamCreate(&stream));
      streams_.push_back(stream);
      CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      streams_.push_back(stream);
    }
    CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }

  void run(long rounds) {
    for (long i = 0; i < rounds; ++i) round(i);
  }

 private:
  void round(long i) {
    const Door door = sabotage_    ? Door::sabotaged
                      : i % 5 == 4 ? Door::stream_ordered
                                   : Door::synchronous;
    const cudaStream_t first = streams_[random_() % streams_.size()];
    const std::size_t bytes = random_size();
    const auto count = static_cast<unsigned>(bytes / sizeof(std::uint32_t));
    const unsigned grid = std::min(32u, (count + threads_a_block - 1) / threads_a_block);
    tag_ += 0x9e3779b1;
    auto* const words = static_cast<std::uint32_t*>(allocate(door, bytes, first));
    fill<<<grid, threads_a_block, 0, first>>>(words, count, tag_, random_delay());
    // The last user may be another stream, ordered behind the first by an event.
    cudaStream_t last = first;
    if (random_() % 4 == 0) {
      last = streams_[random_() % streams_.size()];
      CUDA(cudaEventRecord(event_, first));
      CUDA(cudaStreamWaitEvent(last, event_, 0));
    }
    verify<<<grid, threads_a_block, 0, last>>>(words, count, tag_, wrong_);
    CUDA(cudaGetLastError());
    release(door, words, bytes, last);
  }

  void* allocate(Door door, std::size_t bytes, cudaStream_t stream) {
    void* block = nullptr;
    if (door == Door::stream_ordered) {
      CUDA(cudaMallocAsync(&block, bytes, stream));
    } else if (door == Door::sabotaged && !reckless_.empty()) {
      block = std::exchange(reckless_.back(), nullptr);
      reckless_.pop_back();
    } else {
      CUDA(cudaMalloc(&block, door == Door::sabotaged ? largest : bytes));
    }
    return block;
  }

  void release(Door door, void* block, std::size_t, cudaStream_t last) {
    if (door == Door::stream_ordered) {
      CUDA(cudaFreeAsync(block, last));
    } else if (door == Door::sabotaged) {
      reckless_.push_back(block);
    } else {
      CUDA(cudaFree(block));
    }
  }

  /// Mostly small, some up to 1 MiB; whole words.
  std::size_t random_size() {
    const unsigned kind = random_() % 10;
    const std::size_t limit = kind < 6 ? 4096 : kind < 9 ? 65536 : largest;
    return (1 + random_() % (limit / sizeof(std::uint32_t))) * sizeof(std::uint32_t);
  }

  /// One round in sixteen waits some 50 microseconds on the device.
  long long random_delay() { return random_() % 16 == 0 ? 80000 : 0; }

  static constexpr std::size_t largest = 1 << 20;
  const bool sabotage_;
  unsigned long long* const wrong_;
  std::mt19937 random_;
  std::uint32_t tag_;
  std::vector<cudaStream_t> streams_;
  std::vector<void*> reckless_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 0;
  const bool sabotage = argc > 2 && std::strcmp(argv[2], "--sabotage") == 0;
  if (rounds <= 0) {
    std::fprintf(stderr, "usage: free_after_launch ROUNDS [--sabotage]\n");
    return 2;
  }
  unsigned long long* wrong = nullptr;
  CUDA(cudaMallocManaged(&wrong, sizeof *wrong));
  *wrong = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    const long share = rounds / thread_count + (t < rounds % thread_count ? 1 : 0);
    threads.emplace_back([=] { Worker(t, sabotage, wrong).run(share); });
  }
  for (std::thread& thread : threads) thread.join();
  CUDA(cudaDeviceSynchronize());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::printf("{\"rounds\": %ld, \"wrong\": %llu, \"seconds\": %.2f}\n", rounds, *wrong,
              elapsed.count());
  return *wrong == 0 ? 0 : 1;
}
