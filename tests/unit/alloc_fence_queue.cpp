// Freed blocks behind fences.
#include "core/alloc/fence_queue.hpp"

#include <functional>
#include <vector>

#include "core/device/forwarding.hpp"
#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

/// Does something while a fence is recorded, when no lock is held.
class Meanwhile final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status record(StreamId stream, Fence* out) noexcept override {
    if (then) then();
    return ForwardingDevice::record(stream, out);
  }
  std::function<void()> then;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): each is made after what it refers to.
struct Queue {
  SimulatedDevice simulated;
  Meanwhile device{simulated};
  HeapMutex mutex{Callers::many};
  HeapLock lock{mutex};
  FenceBatches pool;
  FenceQueue queue;
  Block blocks[6];
  Address memory = 0;

  Queue() {
    REQUIRE(simulated.allocate_segment(MiB, &memory).ok());
    for (unsigned i = 0; i < 6; ++i) blocks[i].size = Bytes{512} * (i + 1);
  }
  void work() { simulated.submit(1, memory, 512); }
  bool close() { return queue.close(device, 1, pool, lock); }
  std::vector<Block*> collect() { return listed(queue.collect(device, pool, lock)); }
  std::vector<Block*> wait() { return listed(queue.wait(device, pool, lock)); }
  static std::vector<Block*> listed(Block* chain) {
    std::vector<Block*> blocks;
    for (; chain != nullptr; chain = chain->link) blocks.push_back(chain);
    return blocks;
  }
  Block* at(int i) { return &blocks[i]; }
};

using Blocks = std::vector<Block*>;

}  // namespace

TEST_CASE("FenceQueue: batches come back in order, once their fence has passed") {
  Queue it;
  it.work();
  it.queue.push(it.at(0));
  it.queue.push(it.at(1));
  CHECK(it.queue.open_count() == 2);
  CHECK(it.collect().empty());  // nothing is closed yet
  REQUIRE(it.close());
  it.work();
  it.queue.push(it.at(2));
  REQUIRE(it.close());
  CHECK(it.queue.bytes() == 512 + 1024 + 1536);
  CHECK(it.collect().empty());
  CHECK(it.queue.bytes() == 512 + 1024 + 1536);
  it.simulated.complete_one(1);
  CHECK(it.collect() == Blocks{it.at(0), it.at(1)});
  CHECK(it.collect().empty());
  CHECK(it.wait() == Blocks{it.at(2)});
  CHECK(it.queue.empty());
  CHECK(it.wait().empty());
  CHECK_FALSE(it.close());
  CHECK(it.simulated.live_fences() == 0);
}

TEST_CASE("FenceQueue: without a fence the batch stays open, in its order") {
  Queue it;
  it.simulated.fail_next(Call::record, 1, {Outcome::unsupported});
  it.queue.push(it.at(0));
  it.queue.push(it.at(1));
  it.device.then = [&] {
    // Another thread frees a block meanwhile.
    const HeapLock lock(it.mutex);
    it.queue.push(it.at(2));
  };
  CHECK_FALSE(it.close());
  CHECK(it.queue.open_count() == 3);
  CHECK(it.queue.bytes() == 512 + 1024 + 1536);
  it.device.then = nullptr;
  REQUIRE(it.close());
  CHECK(it.collect() == Blocks{it.at(0), it.at(1), it.at(2)});
}

TEST_CASE("FenceQueue: a block freed while a fence is recorded is not covered by it") {
  Queue it;
  it.queue.push(it.at(0));
  it.device.then = [&] {
    const HeapLock lock(it.mutex);
    it.queue.push(it.at(1));
  };
  REQUIRE(it.close());
  CHECK(it.queue.open_count() == 1);
  CHECK(it.collect() == Blocks{it.at(0)});
  CHECK(it.collect().empty());
  CHECK(it.queue.bytes() == 1024);
}

TEST_CASE("FenceQueue: a device that fails to answer keeps the blocks") {
  Queue it;
  it.queue.push(it.at(0));
  REQUIRE(it.close());
  it.simulated.fail_next(Call::query, 1, {Outcome::failed});
  it.simulated.fail_next(Call::wait, 1, {Outcome::failed});
  CHECK(it.collect().empty());
  CHECK(it.wait().empty());
  CHECK(it.queue.bytes() == 512);
  CHECK(it.wait() == Blocks{it.at(0)});
}

TEST_CASE("FenceQueue: drain waits for everything, by the whole context where it must") {
  Queue it;
  it.work();
  it.queue.push(it.at(0));
  REQUIRE(it.close());
  it.queue.push(it.at(1));
  it.simulated.fail_every(Call::record, 1, {Outcome::unsupported});
  const bool closed = it.close();
  REQUIRE_FALSE(closed);
  Blocks drained;
  it.queue.drain(it.device, closed, it.pool, it.lock, [&](Block* chain) {
    for (Block* block : Queue::listed(chain)) drained.push_back(block);
  });
  CHECK(drained == Blocks{it.at(0), it.at(1)});
  CHECK(it.simulated.calls(Call::synchronize) == 1);
  CHECK(it.simulated.order().pending() == 0);
  CHECK(it.queue.empty());
}

TEST_CASE("FenceQueue: blocks stay where not even the context can be awaited") {
  Queue it;
  it.queue.push(it.at(0));
  it.simulated.fail_every(Call::any, 1, {Outcome::unsupported});
  it.queue.drain(it.device, it.close(), it.pool, it.lock,
                 [](Block*) { FAIL("a block came back"); });
  CHECK(it.queue.open_count() == 1);
  CHECK(it.queue.bytes() == 512);
}

TEST_CASE("FenceQueue: the largest block that waits is known") {
  Queue it;
  CHECK_FALSE(it.queue.may_hold(512));
  it.queue.push(it.at(3));
  CHECK(it.queue.may_hold(2048));
  CHECK_FALSE(it.queue.may_hold(2049));
  REQUIRE(it.close());
  it.queue.push(it.at(0));
  CHECK(it.queue.may_hold(2048));
  std::size_t seen = 0;
  it.queue.for_each([&](const Block*) { ++seen; });
  CHECK(seen == 2);
}
