// Blocks of every size, each filled with a pattern of its own, kept for a while, and verified right
// before it is freed, by several threads with several streams each, near the limit of memory: a
// block whose memory is handed out, moved or unmapped while it is alive or still read shows wrong
// words or ends the program.
//
// usage: block_patterns BLOCKS [--threads N] [--streams N] [--live-mib N] [--sync-share PERCENT]
//                       [--seed S] [--sabotage]
// Prints one JSON object; exit status 1 if any word was wrong. With --sabotage some blocks are
// freed long before their verification: the test must find wrong words then, or it finds nothing at
// all.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_check.cuh"

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr unsigned word_bytes = sizeof(std::uint32_t);
constexpr unsigned threads_a_grid_block = 256;
constexpr unsigned largest_grid = 32;

// Larger blocks are touched in one word of every page, and in their first and last words and bytes:
// that is enough to notice other memory, or none, behind any page of them, and takes no time on the
// device. Which word of a page it is differs from block to block. Smaller ones are touched in every
// byte.
constexpr std::size_t largest_dense = 256 * KiB;
constexpr unsigned page_words = 4096 / word_bytes;

/// What a kernel needs to know of a block.
struct Pattern {
  unsigned char* address;
  std::size_t size;
  std::uint32_t tag;

  __host__ __device__ unsigned words() const { return static_cast<unsigned>(size / word_bytes); }
  __host__ __device__ bool dense() const { return size <= largest_dense; }

  /// How many words are touched; a word may be among them twice.
  __host__ __device__ unsigned touched() const {
    return dense() ? words() : 2 + (words() + page_words - 1) / page_words;
  }

  /// The index of the i-th word that is touched.
  __device__ unsigned index_of(unsigned i) const {
    const unsigned last = words() - 1;
    if (dense()) return i;
    if (i < 2) return i == 0 ? 0 : last;
    return min((i - 2) * page_words + tag % page_words, last);
  }

  /// Two blocks differ in every word of the same index.
  __device__ std::uint32_t value(unsigned index) const { return tag ^ (index * 0x9e3779b1u); }

  /// What the bytes behind the last whole word hold.
  __device__ unsigned char tail_value(std::size_t at) const {
    return static_cast<unsigned char>(value(words()) >> (8 * (at % word_bytes)));
  }
};

/// What was found wrong by one thread's kernels. It lies in the host's memory, where no allocator
/// that is under test can hand it out.
struct Mistakes {
  unsigned long long count;
  // The first of them:
  Pattern block;
  unsigned index;
  std::uint32_t found;
};

/// Keeps a kernel from its work for so many clocks, so that the host is ahead of the device.
__device__ void hold(long long clocks) {
  if (threadIdx.x == 0) {
    const long long begin = clock64();
    while (clock64() - begin < clocks) {
    }
  }
  __syncthreads();
}

__global__ void fill(Pattern block, long long delay) {
  hold(delay);
  auto* const words = reinterpret_cast<std::uint32_t*>(block.address);
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = first; i < block.touched(); i += gridDim.x * blockDim.x) {
    const unsigned index = block.index_of(i);
    words[index] = block.value(index);
  }
  if (first != 0) return;
  for (std::size_t at = std::size_t{block.words()} * word_bytes; at < block.size; ++at) {
    block.address[at] = block.tail_value(at);
  }
}

__global__ void verify(Pattern block, long long delay, Mistakes* mistakes) {
  hold(delay);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(block.address);
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned count = 0;
  unsigned wrong_index = 0;
  std::uint32_t found = 0;
  const auto take = [&](unsigned index, std::uint32_t value) {
    if (count++ != 0) return;
    wrong_index = index;
    found = value;
  };
  for (unsigned i = first; i < block.touched(); i += gridDim.x * blockDim.x) {
    const unsigned index = block.index_of(i);
    const std::uint32_t value = words[index];
    if (value != block.value(index)) take(index, value);
  }
  if (first == 0) {
    for (std::size_t at = std::size_t{block.words()} * word_bytes; at < block.size; ++at) {
      if (block.address[at] != block.tail_value(at)) take(block.words(), block.address[at]);
    }
  }
  if (count == 0 || atomicAdd(&mistakes->count, 0ull + count) != 0) return;
  mistakes->block = block;
  mistakes->index = wrong_index;
  mistakes->found = found;
}

unsigned grid_of(const Pattern& block) {
  const unsigned needed = (block.touched() + threads_a_grid_block - 1) / threads_a_grid_block;
  return std::min(largest_grid, needed);
}

struct Options {
  long blocks = 0;
  long threads = 4;
  long streams = 3;
  long live_mib = 1024;
  long sync_share = 5;
  long seed = 1;
  bool sabotage = false;
};

/// A stream, and how far the host is ahead of it.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t mark = nullptr;
  unsigned launches = 0;
};

struct Block {
  Pattern pattern{};
  Lane* lane = nullptr;          // where it is used and freed
  bool synchronous = false;      // from cudaMalloc
  bool freed = false;            // sabotaged
  cudaEvent_t filled = nullptr;  // what another thread's stream has to wait for
};

/// Where threads leave blocks for one another. What lies there is at most `limit` bytes.
class Exchange {
 public:
  explicit Exchange(std::size_t limit) : limit_(limit) {}

  bool give(const Block& block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes_ + block.pattern.size > limit_) return false;
    bytes_ += block.pattern.size;
    blocks_.push_back(block);
    return true;
  }

  bool take(Block* block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (blocks_.empty()) return false;
    *block = blocks_.front();
    blocks_.pop_front();
    bytes_ -= block->pattern.size;
    return true;
  }

 private:
  const std::size_t limit_;
  std::mutex mutex_;
  std::deque<Block> blocks_;
  std::size_t bytes_ = 0;
};

struct Totals {
  unsigned long long blocks = 0;
  unsigned long long bytes = 0;
  unsigned long long out_of_memory = 0;
};

/// One thread's blocks.
class Worker {
 public:
  Worker(const Options& options, long index, std::size_t room, Exchange* exchange,
         Mistakes* mistakes)
      : options_(options),
        index_(index),
        full_room_(room),
        room_(room),
        exchange_(*exchange),
        mistakes_(mistakes),
        random_(static_cast<unsigned>(options.seed * 1000 + index)),
        lanes_(static_cast<std::size_t>(options.streams)) {
    CUDA(cudaDeviceGetDefaultMemPool(&pool_, 0));
    for (Lane& lane : lanes_) {
      CUDA(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
      lane.mark = new_event();
    }
    handed_over_ = new_event();
  }

  Totals run(long blocks) {
    for (long i = 0; i < blocks; ++i) step(i);
    finish();
    return totals_;
  }

 private:
  // How much is freed, and how far the bound sinks, when there is no memory; and when it rises.
  static constexpr std::size_t freed_share = 16;
  static constexpr std::size_t sinking_share = 32;
  static constexpr std::size_t rising_share = 64;
  static constexpr long steps_to_rise = 8192;
  static constexpr long steps_to_trim = 50000;
  static constexpr unsigned steps_to_exchange = 16;
  static constexpr unsigned verifications_to_hand_over = 8;
  static constexpr unsigned blocks_to_sabotage = 8;
  static constexpr unsigned launches_to_delay = 32;
  static constexpr unsigned longest_delay = 1800000;  // clocks, about a millisecond
  static constexpr unsigned launches_ahead = 256;     // twice that is in a stream at most
  static constexpr std::size_t youngest = 32;

  static cudaEvent_t new_event() {
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
  }

  void step(long i) {
    if (i % steps_to_rise == steps_to_rise - 1) {
      room_ = std::min(full_room_, room_ + full_room_ / rising_share);
    }
    if (i % steps_to_trim == steps_to_trim - 1 && !options_.sabotage) {
      CUDA(cudaMemPoolTrimTo(pool_, 0));
    }
    if (one_in(steps_to_exchange)) take_from_others();
    Block block = new_block(i);
    make_room(block.pattern.size);
    allocate(&block);
    fill<<<grid_of(block.pattern), threads_a_grid_block, 0, block.lane->stream>>>(block.pattern,
                                                                                  random_delay());
    launched(block.lane);
    ++totals_.blocks;
    totals_.bytes += block.pattern.size;
    const bool given = !sabotaged(&block) && one_in(steps_to_exchange) && give_to_others(block);
    if (!given) keep(block);
  }

  Block new_block(long i) {
    Block block;
    block.pattern.size = std::min(random_size(), full_room_ / 4);
    block.pattern.tag = tag_of(static_cast<std::uint32_t>(i * options_.threads + index_));
    block.lane = &random_lane();
    block.synchronous = random_() % 100 < static_cast<unsigned>(options_.sync_share);
    return block;
  }

  /// Different for different serial numbers, and unlike one another.
  static std::uint32_t tag_of(std::uint32_t serial) {
    serial = (serial ^ (serial >> 16)) * 0x85ebca6bu;
    serial = (serial ^ (serial >> 13)) * 0xc2b2ae35u;
    return serial ^ (serial >> 16);
  }

  bool one_in(unsigned n) { return random_() % n == 0; }

  Lane& random_lane() { return lanes_[random_() % lanes_.size()]; }

  long long random_delay() { return one_in(launches_to_delay) ? random_() % longest_delay : 0; }

  /// Any number of bytes: nine in ten below 1 MiB, nine in a hundred up to 16 MiB, few above.
  std::size_t random_size() {
    const unsigned kind = random_() % 100;
    if (kind < 90) return random_size(512, MiB);
    if (kind < 99) return random_size(MiB, 16 * MiB);
    return random_size(16 * MiB, 96 * MiB);
  }

  /// Every order of magnitude alike.
  std::size_t random_size(std::size_t least, std::size_t most) {
    const double ratio = static_cast<double>(most) / static_cast<double>(least);
    const double power = static_cast<double>(random_()) / 4294967296.0;
    return static_cast<std::size_t>(static_cast<double>(least) * std::pow(ratio, power));
  }

  void keep(const Block& block) {
    if (!block.freed) live_bytes_ += block.pattern.size;
    live_.push_back(block);
  }

  void make_room(std::size_t bytes) {
    while (!live_.empty() && live_bytes_ + bytes > room_) retire_one();
  }

  /// Running out of memory is expected near the limit: blocks are freed then, and the bound sinks
  /// for a while, so that the test does not fail all the time.
  void allocate(Block* block) {
    void* address = nullptr;
    const std::size_t size = block->pattern.size;
    for (int idle_tries = 0;;) {
      const cudaError_t error = block->synchronous
                                    ? cudaMalloc(&address, size)
                                    : cudaMallocAsync(&address, size, block->lane->stream);
      if (error == cudaSuccess) break;
      if (error != cudaErrorMemoryAllocation) CUDA(error);
      (void)cudaGetLastError();  // or it would be taken for a launch's
      ++totals_.out_of_memory;
      if (live_.empty()) {
        wait_for_others(++idle_tries);
        continue;
      }
      room_ = std::max(full_room_ / 2, room_ - full_room_ / sinking_share);
      const std::size_t goal = std::max(size, live_bytes_ / freed_share);
      const std::size_t left = live_bytes_ - std::min(goal, live_bytes_);
      do {
        retire_one();
      } while (!live_.empty() && live_bytes_ > left);
    }
    block->pattern.address = static_cast<unsigned char*>(address);
  }

  static void wait_for_others(int tries) {
    if (tries > 200) {
      std::fprintf(stderr, "block_patterns: out of memory with nothing left to free\n");
      std::exit(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  /// Verifies and frees any block, every other time one of the youngest.
  void retire_one() {
    const std::size_t range = one_in(2) ? live_.size() : std::min(live_.size(), youngest);
    std::swap(live_[live_.size() - 1 - random_() % range], live_.back());
    const Block block = live_.back();
    live_.pop_back();
    if (!block.freed) live_bytes_ -= block.pattern.size;
    retire(block);
  }

  void retire(Block block) {
    if (!block.freed && one_in(verifications_to_hand_over)) hand_over(&block);
    const cudaStream_t stream = block.lane->stream;
    verify<<<grid_of(block.pattern), threads_a_grid_block, 0, stream>>>(block.pattern,
                                                                        random_delay(), mistakes_);
    launched(block.lane);
    if (!block.freed) free_now(block);
  }

  /// Nobody waits: a block may be freed while its last kernel has not even begun.
  static void free_now(const Block& block) {
    if (block.synchronous) {
      CUDA(cudaFree(block.pattern.address));
    } else {
      CUDA(cudaFreeAsync(block.pattern.address, block.lane->stream));
    }
  }

  /// To another stream of this thread. The wait is for what the event stands for by now: it may be
  /// recorded again at once.
  void hand_over(Block* block) {
    Lane& to = random_lane();
    if (&to == block->lane) return;
    CUDA(cudaEventRecord(handed_over_, block->lane->stream));
    CUDA(cudaStreamWaitEvent(to.stream, handed_over_, 0));
    block->lane = &to;
  }

  /// The event goes with the block: it must not be recorded again before the taker waits for it.
  bool give_to_others(Block block) {
    if (spare_events_.empty()) spare_events_.push_back(new_event());
    block.filled = spare_events_.back();
    CUDA(cudaEventRecord(block.filled, block.lane->stream));
    block.lane = nullptr;
    if (!exchange_.give(block)) return false;
    spare_events_.pop_back();
    return true;
  }

  bool take_from_others() {
    Block block;
    if (!exchange_.take(&block)) return false;
    block.lane = &random_lane();
    CUDA(cudaStreamWaitEvent(block.lane->stream, block.filled, 0));
    spare_events_.push_back(std::exchange(block.filled, nullptr));
    make_room(block.pattern.size);
    keep(block);
    return true;
  }

  /// Frees a block that is still to be verified. Not the large ones: their memory might be gone by
  /// then, where that of small ones is but in use again.
  bool sabotaged(Block* block) {
    if (!options_.sabotage || block->synchronous || block->pattern.size > MiB) return false;
    if (!one_in(blocks_to_sabotage)) return false;
    free_now(*block);
    block->freed = true;
    return true;
  }

  void launched(Lane* lane) {
    CUDA(cudaGetLastError());
    if (++lane->launches % launches_ahead != 0) return;
    CUDA(cudaEventSynchronize(lane->mark));
    CUDA(cudaEventRecord(lane->mark, lane->stream));
  }

  /// Whoever gives a block comes here later: none is left in the exchange in the end.
  void finish() {
    while (take_from_others()) {
    }
    while (!live_.empty()) retire_one();
    for (Lane& lane : lanes_) {
      CUDA(cudaStreamSynchronize(lane.stream));
      CUDA(cudaStreamDestroy(lane.stream));
      CUDA(cudaEventDestroy(lane.mark));
    }
    spare_events_.push_back(handed_over_);
    for (cudaEvent_t event : spare_events_) CUDA(cudaEventDestroy(event));
  }

  const Options options_;
  const long index_;
  const std::size_t full_room_;
  std::size_t room_;
  Exchange& exchange_;
  Mistakes* const mistakes_;
  std::mt19937 random_;
  std::vector<Lane> lanes_;
  cudaMemPool_t pool_ = nullptr;
  cudaEvent_t handed_over_ = nullptr;
  std::vector<cudaEvent_t> spare_events_;
  std::vector<Block> live_;
  std::size_t live_bytes_ = 0;
  Totals totals_;
};

bool number(const char* text, long least, long* value) {
  char* end = nullptr;
  *value = std::strtol(text, &end, 10);
  return end != text && *end == '\0' && *value >= least;
}

bool parse(int argc, char** argv, Options* options) {
  struct Option {
    const char* name;
    long least;
    long* value;
  };
  const std::array<Option, 5> known{{{"--threads", 1, &options->threads},
                                     {"--streams", 1, &options->streams},
                                     {"--live-mib", 1, &options->live_mib},
                                     {"--sync-share", 0, &options->sync_share},
                                     {"--seed", 0, &options->seed}}};
  if (argc < 2 || !number(argv[1], 1, &options->blocks)) return false;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--sabotage") == 0) {
      options->sabotage = true;
      continue;
    }
    const auto option = std::find_if(known.begin(), known.end(), [&](const Option& candidate) {
      return std::strcmp(argv[i], candidate.name) == 0;
    });
    if (option == known.end() || i + 1 == argc) return false;
    if (!number(argv[++i], option->least, option->value)) return false;
  }
  return true;
}

void print(const Totals& totals, const std::vector<Mistakes>& mistakes, double seconds) {
  unsigned long long wrong = 0;
  for (const Mistakes& one : mistakes) wrong += one.count;
  unsigned long long used = 0;
  unsigned long long reserved = 0;
  cudaMemPool_t pool;
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used));
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &reserved));
  std::printf("{\"blocks\": %llu, \"bytes\": %llu, \"wrong\": %llu, \"seconds\": %.2f, ",
              totals.blocks, totals.bytes, wrong, seconds);
  std::printf("\"out_of_memory\": %llu, \"used_peak\": %llu, \"reserved_peak\": %llu, \"first\": [",
              totals.out_of_memory, used, reserved);
  const char* comma = "";
  for (const Mistakes& one : mistakes) {
    if (one.count == 0) continue;
    std::printf("%s\"%p, %zu bytes, tag %08x: word %u is %08x\"", comma,
                static_cast<void*>(one.block.address), one.block.size, one.block.tag, one.index,
                one.found);
    comma = ", ";
  }
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: block_patterns BLOCKS [--threads N] [--streams N] [--live-mib N] "
                 "[--sync-share PERCENT] [--seed S] [--sabotage]\n");
    return 2;
  }
  CUDA(cudaFree(nullptr));
  cudaMemPool_t pool;
  unsigned long long keep_all = ~0ull;  // as PyTorch has it
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
  const auto count = static_cast<std::size_t>(options.threads);
  Mistakes* mistakes = nullptr;
  CUDA(cudaMallocHost(&mistakes, count * sizeof *mistakes));
  std::fill_n(mistakes, count, Mistakes{});

  const std::size_t live = static_cast<std::size_t>(options.live_mib) * MiB;
  Exchange exchange(live / 32);
  const std::size_t room = (live - live / 32) / count;
  std::vector<Totals> parts(count);
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (long t = 0; t < options.threads; ++t) {
    const long share = options.blocks / options.threads + (t < options.blocks % options.threads);
    threads.emplace_back(
        [&, t, share] { parts[t] = Worker(options, t, room, &exchange, &mistakes[t]).run(share); });
  }
  for (std::thread& thread : threads) thread.join();
  CUDA(cudaDeviceSynchronize());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  Totals totals;
  for (const Totals& part : parts) {
    totals.blocks += part.blocks;
    totals.bytes += part.bytes;
    totals.out_of_memory += part.out_of_memory;
  }
  const std::vector<Mistakes> found(mistakes, mistakes + count);
  print(totals, found, elapsed.count());
  const auto wrong = [](const Mistakes& one) { return one.count != 0; };
  return std::any_of(found.begin(), found.end(), wrong) ? 1 : 0;
}
