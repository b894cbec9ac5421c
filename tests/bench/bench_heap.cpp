// What a heap costs the host as live blocks grow in number: nanoseconds an allocation and a free
// under random churn, on the simulated device (which charges nothing but its own bookkeeping, and
// is hardly asked once the heap has grown).
//
// usage: bench_heap [--quick]
// Exit status 1 where an allocation beside 10^6 live blocks costs more than three times what it
// costs beside 10^3; a quick run, on a busy machine perhaps, only shows it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "core/alloc/native_heap.hpp"
#include "core/alloc/virtual_heap.hpp"
#include "core/device/simulated.hpp"

using namespace fragshim;

namespace {

constexpr std::size_t counts[] = {1'000, 10'000, 100'000, 1'000'000};
constexpr double most_growth = 3;
constexpr StreamId stream = 1;
constexpr Bytes card = Bytes{1} << 43;  // never full
constexpr std::size_t batch = 64;

struct Subject {
  const char* name;
  std::function<std::unique_ptr<Heap>(Device&)> make;
};

std::vector<Subject> subjects() {
  const AllocationConfig config;
  return {
      {"native, in stream order",
       [=](Device& device) { return std::make_unique<NativeHeap>(device, config); }},
      {"native, fenced",
       [=](Device& device) {
         NativeOptions options;
         options.reuse = NativeOptions::Reuse::fenced;
         return std::make_unique<NativeHeap>(device, config, options);
       }},
      {"virtual",
       [=](Device& device) {
         return std::make_unique<VirtualHeap>(device, config,
                                              VirtualOptions{card / 2, Callers::many, {}});
       }},
  };
}

/// Sizes as frameworks ask for them: as many from each power of two, 512 B to 1 MiB.
class Sizes {
 public:
  Bytes next() {
    const auto power = 9 + random_() % 11;
    return (Bytes{1} << power) + random_() % (Bytes{1} << power);
  }
  std::size_t index(std::size_t count) { return random_() % count; }

 private:
  std::mt19937_64 random_{42};
};

/// Nanoseconds a call.
struct Cost {
  double allocate = 0;
  double free = 0;
};

class Churn {
 public:
  Churn(Heap& heap, std::size_t blocks) : heap_(heap), live_(blocks) {
    for (Address& address : live_) address = allocate(sizes_.next());
  }

  /// Frees a batch of random blocks and allocates as many others, until `pairs` are done.
  Cost run(std::size_t pairs) {
    Cost total;
    const std::size_t batches = (pairs + batch - 1) / batch;
    for (std::size_t i = 0; i < batches; ++i) {
      choose();
      total.free += timed([&](std::size_t j) { free(live_[victims_[j]]); });
      total.allocate += timed([&](std::size_t j) { live_[victims_[j]] = allocate(wanted_[j]); });
    }
    const auto calls = static_cast<double>(batches * batch);
    return {total.allocate / calls, total.free / calls};
  }

 private:
  using Clock = std::chrono::steady_clock;

  void choose() {
    // One victim from each of 64 equal parts, so that none is chosen twice.
    const std::size_t part = live_.size() / batch;
    for (std::size_t j = 0; j < batch; ++j) {
      victims_[j] = j * part + sizes_.index(part);
      wanted_[j] = sizes_.next();
    }
  }

  template <typename Function>
  double timed(Function&& call) {
    const auto begin = Clock::now();
    for (std::size_t j = 0; j < batch; ++j) call(j);
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }

  Address allocate(Bytes size) {
    const Grant grant = heap_.allocate(size, stream);
    if (!grant.status.ok()) fail("an allocation");
    return grant.address;
  }

  void free(Address address) {
    if (!heap_.free(address, stream).ok()) fail("a free");
  }

  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "bench_heap: %s failed\n", what);
    std::exit(1);
  }

  Heap& heap_;
  Sizes sizes_;
  std::vector<Address> live_;
  std::size_t victims_[batch] = {};
  Bytes wanted_[batch] = {};
};

/// The medians of several rounds, after as many pairs as it takes for the free blocks to scatter.
Cost cost_beside(std::size_t blocks, const Subject& subject, std::size_t pairs) {
  SimulatedOptions options;
  options.capacity = card;
  SimulatedDevice device(options);
  const std::unique_ptr<Heap> heap = subject.make(device);
  Churn churn(*heap, blocks);
  churn.run(std::max(blocks, pairs));
  constexpr int rounds = 5;
  std::vector<double> allocate;
  std::vector<double> free;
  for (int round = 0; round < rounds; ++round) {
    const Cost cost = churn.run(pairs);
    allocate.push_back(cost.allocate);
    free.push_back(cost.free);
  }
  std::sort(allocate.begin(), allocate.end());
  std::sort(free.begin(), free.end());
  return {allocate[rounds / 2], free[rounds / 2]};
}

void print_row(const char* name, const char* what, const std::vector<double>& costs) {
  std::printf("%-24s%-10s", name, what);
  for (const double cost : costs) std::printf("%10.1f", cost);
  std::printf("%9.2fx\n", costs.back() / costs.front());
}

/// True where the cost of an allocation stays within bounds.
bool show(const Subject& subject, std::size_t pairs) {
  std::vector<double> allocate;
  std::vector<double> free;
  for (const std::size_t count : counts) {
    const Cost cost = cost_beside(count, subject, pairs);
    allocate.push_back(cost.allocate);
    free.push_back(cost.free);
  }
  print_row(subject.name, "allocate", allocate);
  print_row("", "free", free);
  std::fflush(stdout);
  return allocate.back() <= most_growth * allocate.front();
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const std::size_t pairs = quick ? 20'000 : 200'000;
  std::printf("nanoseconds a call, by live blocks\n%-34s", "heap");
  for (const std::size_t count : counts) std::printf("%10zu", count);
  std::printf("%10s\n", "growth");
  bool good = true;
  for (const Subject& subject : subjects()) good = show(subject, pairs) && good;
  std::printf("an allocation grows at most %.0fx from 10^3 to 10^6 live blocks: %s\n", most_growth,
              good ? "yes" : "NO");
  return good || quick ? 0 : 1;
}
