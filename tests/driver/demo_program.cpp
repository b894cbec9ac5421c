// A program of the driver API such as people have: several streams, long-lived memory and much
// short-lived memory of uneven sizes, plain and stream-ordered, freed as soon as the work that uses
// it is submitted. It checks its bytes, so that memory handed out again too early shows.
//
// Usage: demo_program [rounds]; ends with 1 if a byte is wrong, 2 if the driver refuses a call.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr std::size_t sample = 64;        // bytes looked at, at each end of a block
constexpr std::size_t max_samples = 512;  // between two looks
constexpr int stream_count = 4;

void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "demo_program: %s: %s\n", what, name == nullptr ? "unknown error" : name);
  std::exit(2);
}
#define MUST(call) must(call, #call)

struct Block {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  unsigned char value = 0;
};

class Demo {
 public:
  Demo() {
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device_, 0));
    MUST(cuDevicePrimaryCtxRetain(&context_, device_));
    MUST(cuCtxSetCurrent(context_));
    for (CUstream& stream : streams_) MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    void* pinned = nullptr;
    MUST(cuMemAllocHost(&pinned, sample * max_samples));
    samples_ = static_cast<unsigned char*>(pinned);
  }

  void round(int number) {
    const CUstream stream = streams_[static_cast<std::size_t>(number) % stream_count];
    const std::size_t count = 3 + random_() % 6;
    std::vector<Block> activations;
    for (std::size_t i = 0; i < count; ++i) activations.push_back(take_on(stream));
    for (const Block& block : activations) look_at(block, stream);
    for (const Block& block : activations) MUST(cuMemFreeAsync(block.address, stream));
    use_plain(stream);
    if (number % 50 == 0) keep(stream);
    if (number % 16 == 15) check();
  }

  void finish() {
    check();
    for (const Block& block : kept_) {
      look_at(block, streams_[0]);
      check();
      MUST(cuMemFree(block.address));
    }
    kept_.clear();
    MUST(cuMemFreeHost(samples_));
    for (const CUstream stream : streams_) MUST(cuStreamDestroy(stream));
    MUST(cuDevicePrimaryCtxRelease(device_));
  }

  std::size_t blocks() const { return blocks_; }
  std::size_t asked_for() const { return asked_for_; }
  std::size_t wrong() const { return wrong_; }

 private:
  /// From 512 bytes to 2 MiB, small ones as often as big ones, hardly ever a power of two.
  std::size_t uneven_size() {
    const std::size_t scale = std::size_t{512} << (random_() % 12);
    return scale + random_() % scale;
  }

  Block fresh() {
    ++blocks_;
    const Block block{0, uneven_size(), static_cast<unsigned char>(1 + blocks_ % 255)};
    asked_for_ += block.size;
    return block;
  }

  Block take_on(CUstream stream) {
    Block block = fresh();
    MUST(cuMemAllocAsync(&block.address, block.size, stream));
    MUST(cuMemsetD8Async(block.address, block.value, block.size, stream));
    return block;
  }

  Block take_plain(CUstream stream) {
    Block block = fresh();
    MUST(cuMemAlloc(&block.address, block.size));
    MUST(cuMemsetD8Async(block.address, block.value, block.size, stream));
    return block;
  }

  /// Plain memory may be freed right behind the work that uses it: cuMemFree sees to that.
  void use_plain(CUstream stream) {
    const Block block = take_plain(stream);
    look_at(block, stream);
    MUST(cuMemFree(block.address));
  }

  /// Memory that lives long, among all that comes and goes.
  void keep(CUstream stream) {
    kept_.push_back(take_plain(stream));
    if (kept_.size() <= 16) return;
    look_at(kept_.front(), stream);
    MUST(cuMemFree(kept_.front().address));
    kept_.erase(kept_.begin());
  }

  void look_at(const Block& block, CUstream stream) {
    if (expected_.size() + 2 > max_samples) check();
    for (const std::size_t offset : {std::size_t{0}, block.size - sample}) {
      MUST(cuMemcpyDtoHAsync(samples_ + expected_.size() * sample, block.address + offset, sample,
                             stream));
      expected_.push_back(block.value);
    }
  }

  void check() {
    MUST(cuCtxSynchronize());
    for (std::size_t i = 0; i < expected_.size() * sample; ++i) {
      wrong_ += samples_[i] != expected_[i / sample] ? 1 : 0;
    }
    expected_.clear();
  }

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream streams_[stream_count] = {};
  unsigned char* samples_ = nullptr;
  std::vector<unsigned char> expected_;  // by sample
  std::vector<Block> kept_;
  std::mt19937 random_{7};
  std::size_t blocks_ = 0;
  std::size_t asked_for_ = 0;
  std::size_t wrong_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 2000;
  const auto start = std::chrono::steady_clock::now();
  Demo demo;
  for (int i = 0; i < rounds; ++i) demo.round(i);
  demo.finish();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf(
      "demo_program: %d rounds on %d streams, %zu blocks of %zu MiB in all, %zu bytes wrong, %.2f "
      "s\n",
      rounds, stream_count, demo.blocks(), demo.asked_for() >> 20, demo.wrong(), took.count());
  return demo.wrong() == 0 ? 0 : 1;
}
