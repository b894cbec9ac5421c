// A day of training: a hundred million allocations and frees by each heap, in the sizes and on the
// streams that steps of uneven length take, on the simulated device. What the heaps keep on the
// host, their addresses and their mappings must be as they were after the first hours.
//
// usage: bench_day [--quick]
// Exit status 1 where anything has grown.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "core/alloc/native_heap.hpp"
#include "core/alloc/virtual_heap.hpp"
#include "core/device/forwarding.hpp"
#include "core/device/simulated.hpp"

using namespace fragshim;

namespace {

constexpr int hours = 24;
constexpr std::uint64_t pairs_a_day = 100'000'000;
constexpr std::uint64_t pairs_quick = 5'000'000;
constexpr Bytes card_size = 80 * GiB;
constexpr double most_growth = 1.02;
constexpr StreamId compute = 1;

/// A simulated device whose work gets done while others ask for it, as a real one's does; and that
/// knows how many addresses are reserved.
class Card final : public ForwardingDevice {
 public:
  explicit Card(SimulatedDevice& device) : ForwardingDevice(device), device_(device) {}

  Status query(Fence fence) noexcept override {
    device_.complete_one(compute);
    return inner_.query(fence);
  }
  Status reserve(Bytes size, Address* out) noexcept override {
    const Status status = inner_.reserve(size, out);
    if (status.ok()) addresses += size;
    return status;
  }
  Status unreserve(Address address, Bytes size) noexcept override {
    const Status status = inner_.unreserve(address, size);
    if (status.ok()) addresses -= size;
    return status;
  }

  Bytes addresses = 0;

 private:
  SimulatedDevice& device_;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "bench_day: %s failed\n", what);
  std::exit(1);
}

/// A program that trains through one door: weights for good; a step's activations until its
/// backward pass, scratch at once; input from a stream that comes and goes, gradients to another.
class Training {
 public:
  Training(Heap& heap, SimulatedDevice& device, bool synchronous)
      : heap_(heap), device_(device), synchronous_(synchronous) {
    for (int layer = 0; layer < layers; ++layer) take(&weights_, 96 * MiB, compute);
  }

  void step() {
    ++steps_;
    device_.complete(compute);  // as reading the loss does
    if (steps_ % 64 == 0) renew_input_stream();
    const Bytes tokens = 512 + random_() % 7680;
    std::vector<Address>& input = inputs_[steps_ % 2];  // one step ahead
    give_all(&input, compute);
    take(&input, tokens * 16, input_stream_);
    forward(tokens);
    backward(tokens);
    if (steps_ % 500 == 0) evaluate();
    if (steps_ % 1000 == 0) heap_.trim(0);  // a checkpoint, behind which many empty the cache
  }

  std::uint64_t pairs() const { return heap_.counters().frees; }
  const Heap& heap() const { return heap_; }

 private:
  static constexpr int layers = 24;
  static constexpr StreamId gradients = 2;
  static constexpr StreamId first_input = 3;
  static constexpr StreamId input_streams = 8;  // handles come again
  static constexpr std::array<Bytes, 6> activation_bytes = {2048, 2048, 6144, 2048, 5504, 2752};

  void take(std::vector<Address>* into, Bytes size, StreamId stream) {
    const Grant grant = heap_.allocate(size, synchronous_ ? 0 : stream);
    if (!grant.status.ok()) fail("an allocation");
    into->push_back(grant.address);
  }

  void give(Address address, StreamId stream) {
    if (!heap_.free(address, synchronous_ ? all_streams : stream).ok()) fail("a free");
  }

  void give_all(std::vector<Address>* from, StreamId stream) {
    for (; !from->empty(); from->pop_back()) give(from->back(), stream);
  }

  void launch(int layer) {
    device_.submit(compute, weights_[static_cast<std::size_t>(layer)], 512, Access::read);
  }

  void forward(Bytes tokens) {
    for (int layer = 0; layer < layers; ++layer) {
      launch(layer);
      for (const Bytes bytes : activation_bytes) {
        take(&activations_, tokens * bytes, compute);
        take(&scratch_, 512 + random_() % (64 * KiB), compute);
      }
      give_all(&scratch_, compute);
    }
  }

  void backward(Bytes tokens) {
    for (int layer = 0; layer < layers; ++layer) {
      launch(layer);
      take(&buckets_, 25 * MiB, gradients);
      for (std::size_t i = 0; i < activation_bytes.size(); ++i) {
        take(&scratch_, tokens * activation_bytes[i], compute);
        give(activations_.back(), compute);
        activations_.pop_back();
      }
      give_all(&scratch_, compute);
      // Half of them are freed where they were used, on another stream.
      if (layer % 4 == 3) give_all(&buckets_, layer % 8 == 3 ? gradients : compute);
    }
  }

  /// Whole sentences, one by one: sizes that no step has asked for.
  void evaluate() {
    for (int i = 0; i < 200; ++i) {
      take(&scratch_, (1 + random_() % 4096) * 32'000, compute);
      if (i % 3 == 2) give_all(&scratch_, compute);
    }
    give_all(&scratch_, compute);
  }

  void renew_input_stream() {
    heap_.forget_stream(input_stream_);
    input_stream_ = first_input + (input_stream_ - first_input + 1) % input_streams;
  }

  Heap& heap_;
  SimulatedDevice& device_;
  const bool synchronous_;
  std::mt19937_64 random_{7};
  std::uint64_t steps_ = 0;
  StreamId input_stream_ = first_input;
  std::vector<Address> weights_;
  std::array<std::vector<Address>, 2> inputs_;
  std::vector<Address> activations_;
  std::vector<Address> scratch_;
  std::vector<Address> buckets_;
};

/// What must not grow: of the process, then of the card and the heaps.
struct Figure {
  const char* name;
  std::vector<double> by_hour;
};

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t whole = 0;
  std::uint64_t resident = 0;
  file >> whole >> resident;
  return static_cast<double>(resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) /
         static_cast<double>(MiB);
}

double host_mappings() {
  std::ifstream file("/proc/self/maps");
  return static_cast<double>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

double gib(Bytes size) { return static_cast<double>(size) / static_cast<double>(GiB); }

/// Whether the second half of the day lies above the first. Some figures rise and fall as steps do.
bool grows(const Figure& figure) {
  const auto middle = figure.by_hour.begin() + hours / 2;
  const double before = *std::max_element(figure.by_hour.begin(), middle);
  const double after = *std::min_element(middle, figure.by_hour.end());
  return after > before * most_growth;
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const std::uint64_t pairs_an_hour = (quick ? pairs_quick : pairs_a_day) / hours + 1;

  SimulatedOptions options;
  options.capacity = card_size;
  SimulatedDevice device(options);
  Card card(device);
  const AllocationConfig config;
  NativeOptions native;
  native.reuse = NativeOptions::Reuse::fenced;
  native.fence_spare = 64 * MiB;
  NativeHeap synchronous(card, config, native);
  VirtualHeap stream_ordered(card, config);
  Training trainings[] = {{synchronous, device, true}, {stream_ordered, device, false}};

  Figure figures[] = {{"host MiB", {}},  {"host maps", {}},  {"addresses GiB", {}},
                      {"mappings", {}},  {"segments", {}},   {"fences", {}},
                      {"sync. GiB", {}}, {"ordered GiB", {}}};
  std::printf("%4s%14s", "hour", "pairs");
  for (const Figure& figure : figures) std::printf("%15s", figure.name);
  std::printf("\n");
  for (int hour = 1; hour <= hours; ++hour) {
    for (Training& training : trainings) {
      while (training.pairs() < pairs_an_hour * static_cast<std::uint64_t>(hour)) training.step();
    }
    const double now[] = {resident_mib(),
                          host_mappings(),
                          gib(card.addresses),
                          static_cast<double>(device.mappings()),
                          static_cast<double>(device.segments()),
                          static_cast<double>(device.live_fences()),
                          gib(synchronous.counters().reserved),
                          gib(stream_ordered.counters().reserved)};
    std::printf("%4d%14" PRIu64, hour, trainings[0].pairs() + trainings[1].pairs());
    for (std::size_t i = 0; i < std::size(now); ++i) {
      figures[i].by_hour.push_back(now[i]);
      std::printf("%15.2f", now[i]);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  bool good = device.hazards() == 0;
  for (const Figure& figure : figures) {
    if (!grows(figure)) continue;
    std::printf("%s: grows\n", figure.name);
    good = false;
  }
  std::string why;
  good = good && synchronous.check(&why) && stream_ordered.check(&why);
  std::printf("no figure stays above what it was in the first half of the day: %s%s\n",
              good ? "yes" : "NO ", why.c_str());
  return good ? 0 : 1;
}
