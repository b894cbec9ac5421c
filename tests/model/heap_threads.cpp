// Eight threads on one heap, near its limit: for the thread sanitizer, and against refusals that
// are no one's fault but the heap's.
#include <atomic>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/alloc/native_heap.hpp"
#include "core/alloc/virtual_heap.hpp"
#include "core/device/forwarding.hpp"
#include "core/device/simulated.hpp"
#include "tests/model/choices.hpp"
#include "tests/model/seeds.hpp"

using namespace fragshim;
using namespace fragshim::model;

namespace {

constexpr unsigned thread_count = 8;

/// Catches calls that name a stream which is gone: a driver would crash.
class StreamWatch final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status record(StreamId stream, Fence* out) noexcept override {
    look(stream);
    std::this_thread::yield();
    look(stream);
    return ForwardingDevice::record(stream, out);
  }
  Status stream_wait(StreamId stream, Fence fence) noexcept override {
    look(stream);
    return ForwardingDevice::stream_wait(stream, fence);
  }
  void destroyed(StreamId stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    gone_.insert(stream);
  }
  std::uint64_t misuses() const { return misuses_; }

 private:
  void look(StreamId stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (gone_.count(stream) != 0) ++misuses_;
  }
  std::mutex mutex_;
  std::set<StreamId> gone_;
  std::atomic<std::uint64_t> misuses_{0};
};

struct Block {
  Address address = 0;
  Bytes size = 0;
  StreamId stream = 0;
};

/// Blocks that change threads.
class Exchange {
 public:
  void put(const Block& block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.push_back(block);
  }
  bool take(Block* block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (blocks_.empty()) return false;
    *block = blocks_.front();
    blocks_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<Block> blocks_;
};

class Crowd {
 public:
  explicit Crowd(Bytes capacity) : simulated_(options(capacity)), device_(simulated_) {}

  void make_native(NativeOptions::Reuse reuse) {
    NativeOptions options;
    options.reuse = reuse;
    stream_ordered_ = false;
    fenced_ = reuse == NativeOptions::Reuse::fenced;
    heap_ = std::make_unique<NativeHeap>(device_, AllocationConfig{}, options);
  }
  void make_stream_ordered() {
    stream_ordered_ = true;
    VirtualOptions options;
    options.span = 64 * GiB;
    options.chunks.least = 2 * MiB;
    heap_ = std::make_unique<VirtualHeap>(device_, AllocationConfig{}, options);
  }

  template <class Body>
  void run(Body body) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; ++i) threads.emplace_back([&, i] { body(*this, i); });
    for (std::thread& thread : threads) thread.join();
  }

  /// Everything a thread does at random: the heap may refuse, but must stay right.
  void live(std::uint64_t seed, int steps) {
    SeededChoices choices(seed);
    std::vector<Block> mine;
    StreamId stream = new_stream();
    for (int i = 0; i < steps; ++i) {
      const std::uint64_t what = choices.below(100);
      if (what < 45) {
        const Bytes size = choices.size_up_to(choices.one_in(2) ? MiB : 16 * MiB);
        const Grant grant = heap_->allocate(size, stream);
        if (grant.address == 0) continue;
        simulated_.submit(stream, grant.address, size);
        mine.push_back({grant.address, size, stream});
      } else if (what < 85) {
        if (!mine.empty()) free_any(choices, &mine, stream);
      } else if (what < 90) {
        pass_on(choices, &mine, stream);
      } else if (what < 97) {
        simulated_.complete_one(stream);
      } else if (what == 97) {
        heap_->trim(choices.one_in(2) ? 0 : 32 * MiB);
      } else if (what == 98) {
        stream = next_stream(stream, &mine);
      } else {
        heap_->usage();
      }
    }
    for (const Block& block : mine) heap_->free(block.address, stream);
    simulated_.complete(stream);
  }

  /// Never more than one block at a time, and there is room for one for each thread.
  void take_turns(Bytes size, int rounds) {
    const StreamId stream = new_stream();
    for (int i = 0; i < rounds; ++i) {
      const Grant grant = heap_->allocate(size, stream);
      if (grant.address == 0) {
        ++refused_;
        continue;
      }
      simulated_.submit(stream, grant.address, size);
      heap_->free(grant.address, stream);
      if (i % 3 == 0) simulated_.complete(stream);
    }
    simulated_.complete(stream);
  }

  void finish() {
    Block block;
    simulated_.complete_all();
    const StreamId stream = new_stream();
    while (exchange_.take(&block)) heap_->free(block.address, stream);
    std::string why;
    if (!heap_->check(&why)) throw std::runtime_error(why);
    heap_->trim(0);
    if (simulated_.hazards() != 0) throw std::runtime_error(simulated_.first_hazard());
    if (simulated_.used() != 0) throw std::runtime_error("memory is lost");
    if (heap_->counters().reserved != 0) throw std::runtime_error("something stays reserved");
    if (device_.misuses() != 0) throw std::runtime_error("a stream was named after its end");
    // A heap gives up after a number of attempts, while other threads snatch what it waits for.
    if (refused_ > heap_->counters().allocations / 20) {
      throw std::runtime_error(std::to_string(refused_) + " needless refusals");
    }
  }

 private:
  static SimulatedOptions options(Bytes capacity) {
    SimulatedOptions options;
    options.capacity = capacity;
    return options;
  }
  StreamId new_stream() { return next_stream_id_.fetch_add(1); }
  void order(StreamId before, StreamId after) {
    simulated_.order().order_after(after, simulated_.order().record(before));
  }

  void free_any(Choices& choices, std::vector<Block>* mine, StreamId stream) {
    const std::size_t which = choices.below(mine->size());
    const Block block = (*mine)[which];
    (*mine)[which] = mine->back();
    mine->pop_back();
    heap_->free(block.address, stream);
  }

  /// Gives a block to another thread, or takes one over and frees it behind its work.
  void pass_on(Choices& choices, std::vector<Block>* mine, StreamId stream) {
    if (!stream_ordered_ && !fenced_) return;
    if (choices.one_in(2) && !mine->empty()) {
      Block block = mine->back();
      mine->pop_back();
      block.stream = stream;
      exchange_.put(block);
      return;
    }
    Block block;
    if (!exchange_.take(&block)) return;
    order(block.stream, stream);
    simulated_.submit(stream, block.address, block.size);
    heap_->free(block.address, stream);
  }

  /// The thread goes on with another stream; the old one is destroyed.
  StreamId next_stream(StreamId stream, std::vector<Block>*) {
    if (!stream_ordered_) return stream;
    const StreamId next = new_stream();
    order(stream, next);
    heap_->forget_stream(stream);
    device_.destroyed(stream);
    return next;
  }

  SimulatedDevice simulated_;
  StreamWatch device_;
  std::unique_ptr<Heap> heap_;
  bool stream_ordered_ = false;
  bool fenced_ = false;
  Exchange exchange_;
  std::atomic<StreamId> next_stream_id_{1};
  std::atomic<std::uint64_t> refused_{0};
};

template <class Make>
void live_together(Make make) {
  for_each_seed(4, [&](std::uint64_t seed, bool) {
    Crowd crowd(96 * MiB);
    make(crowd);
    crowd.run([&](Crowd& all, unsigned i) { all.live(seed * thread_count + i, 1500); });
    crowd.finish();
  });
}

template <class Make>
void take_turns(Bytes size, Bytes capacity, Make make) {
  for_each_seed(3, [&](std::uint64_t, bool) {
    Crowd crowd(capacity);
    make(crowd);
    crowd.run([&](Crowd& all, unsigned) { all.take_turns(size, 400); });
    crowd.finish();
  });
}

void in_order(Crowd& crowd) { crowd.make_native(NativeOptions::Reuse::in_order); }
void fenced(Crowd& crowd) { crowd.make_native(NativeOptions::Reuse::fenced); }
void stream_ordered(Crowd& crowd) { crowd.make_stream_ordered(); }

}  // namespace

TEST_CASE("threads: native, in stream order", "[threads]") { live_together(in_order); }
TEST_CASE("threads: native, fenced", "[threads]") { live_together(fenced); }
TEST_CASE("threads: stream-ordered", "[threads]") { live_together(stream_ordered); }

TEST_CASE("room for every thread serves every thread: native, in stream order", "[threads]") {
  take_turns(20 * MiB, Bytes{thread_count} * 20 * MiB, in_order);
}
TEST_CASE("room for every thread serves every thread: native, fenced", "[threads]") {
  take_turns(20 * MiB, Bytes{thread_count} * 20 * MiB, fenced);
}
TEST_CASE("room for every thread serves every thread: stream-ordered", "[threads]") {
  take_turns(20 * MiB, Bytes{thread_count} * 20 * MiB, stream_ordered);
}
