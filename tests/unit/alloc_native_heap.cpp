// NativeHeap where a program would notice: fenced reuse, pinned segments, garbage collection.
#include "core/alloc/native_heap.hpp"

#include <vector>

#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

SimulatedOptions with(Bytes capacity, bool context_fences = true) {
  SimulatedOptions options;
  options.capacity = capacity;
  options.context_fences = context_fences;
  return options;
}

NativeOptions fenced() {
  NativeOptions options;
  options.reuse = NativeOptions::Reuse::fenced;
  return options;
}

struct Native {
  SimulatedDevice device;
  NativeHeap heap;
  explicit Native(const NativeOptions& options = {}, const AllocationConfig& config = {},
                  const SimulatedOptions& simulated = {})
      : device(simulated), heap(device, config, options) {}

  Address take(Bytes size, StreamId stream = 1) {
    const Grant grant = heap.allocate(size, stream);
    REQUIRE(grant.address != 0);
    return grant.address;
  }
  void free(Address address) { REQUIRE(heap.free(address, 1).ok()); }
  void check() {
    std::string why;
    REQUIRE(heap.check(&why));
    REQUIRE(device.hazards() == 0);
  }
};

}  // namespace

TEST_CASE("native: a block of 200 MiB serves 181 but not 180 where 128 is the limit") {
  AllocationConfig config;
  config.max_split_size = 128 * MiB;
  Native it({}, config);
  const Address block = it.take(200 * MiB);
  it.free(block);
  const bool served = GENERATE(true, false);
  CHECK((it.take((served ? 181 : 180) * MiB) == block) == served);
  CHECK(it.heap.counters().allocated == (served ? 200 : 180) * MiB);
  it.check();
}

TEST_CASE("native: blocks are split, joined, and found again at the lowest address") {
  Native it;
  const Address a = it.take(4 * MiB);
  const Address b = it.take(4 * MiB);
  CHECK(b == a + 4 * MiB);
  CHECK(it.device.segments() == 1);
  it.free(a);
  it.free(b);
  CHECK(it.heap.counters().merges == 2);
  CHECK(it.heap.usage().free_blocks == 1);
  CHECK(it.take(8 * MiB) == a);
  CHECK(it.take(4 * MiB, 2) != a + 8 * MiB);  // another stream's memory is left alone
  it.check();
}

TEST_CASE("fenced: a block is not handed out before its fence has passed") {
  Native it(fenced());
  const Address block = it.take(20 * MiB);
  it.device.submit(7, block, 20 * MiB);
  it.free(block);
  CHECK(it.heap.usage().pending == 20 * MiB);
  const Address other = it.take(20 * MiB);
  CHECK(other != block);
  it.device.complete(7);
  CHECK(it.take(20 * MiB) == block);
  CHECK(it.heap.usage().pending == 0);
  it.check();
}

TEST_CASE("large blocks begin and end at whole units, however they were cut") {
  NativeOptions options = fenced();
  options.large_unit = 64 * KiB;
  Native it(options);
  std::vector<Address> blocks;
  for (Bytes i = 0; i < 400; ++i) {
    const Bytes size = 1 * MiB + 512 * (1 + i * 7919 % 20000);
    blocks.push_back(it.take(size));
    CHECK(blocks.back() % (64 * KiB) == 0);
    CHECK(it.heap.counters().allocated % (64 * KiB) == 0);
    if (i % 3 != 0) {
      it.free(blocks[static_cast<std::size_t>(i / 3)]);
      blocks[static_cast<std::size_t>(i / 3)] = it.take(2 * MiB - 512);
    }
  }
  it.check();
  for (const Address block : blocks) it.free(block);
  it.take(512);  // small ones keep theirs
  CHECK(it.heap.counters().allocated == 512);
  it.check();
}

TEST_CASE("fenced: many frees share a fence") {
  Native it(fenced());
  std::vector<Address> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(it.take(512));
  for (const Address block : blocks) it.free(block);
  CHECK(it.device.calls(Call::record) == 1);
  CHECK(it.device.calls(Call::query) == 0);
}

TEST_CASE("fenced: near the limit a request waits for its own freed memory") {
  Native it(fenced(), {}, with(40 * MiB));
  const Address a = it.take(20 * MiB);
  const Address b = it.take(20 * MiB);
  it.device.submit(1, a, 20 * MiB);
  it.device.submit(2, b, 20 * MiB);
  it.free(a);
  it.free(b);
  CHECK(it.take(40 * MiB) != 0);
  CHECK(it.heap.counters().waits > 0);
  CHECK(it.heap.counters().ooms == 0);
  it.check();
}

TEST_CASE(
    "fenced: without fences over the context, the context is awaited, for many frees at once") {
  Native it(fenced(), {}, with(unlimited, false));
  for (int i = 0; i < 1000; ++i) {
    const Address block = it.take(20 * MiB);
    it.device.submit(3, block, 20 * MiB);
    it.free(block);
  }
  CHECK(it.device.calls(Call::synchronize) > 0);
  CHECK(it.device.calls(Call::synchronize) <= 1000 / 8);
  CHECK(it.heap.counters().reserved <= 300 * MiB);
  it.check();
}

TEST_CASE("fenced: freed memory does not pile up while the device is behind") {
  Native it(fenced());
  constexpr Bytes size = 64 * MiB;
  for (int i = 0; i < 6; ++i) {
    const Address block = it.take(size);
    it.device.submit(3, block, size);
    it.free(block);
    // The device is one piece behind, always.
    if (i > 0) it.device.complete_one(3);
  }
  CHECK(it.heap.counters().reserved <= 256 * MiB + size);
  it.check();
}

TEST_CASE("a pinned segment is neither split nor reused, and goes once all of it is free") {
  Native it(GENERATE(false, true) ? fenced() : NativeOptions{});
  const Address a = it.take(4 * MiB);
  const Address b = it.take(4 * MiB);
  CHECK_FALSE(it.heap.pin_segment(b));
  REQUIRE(it.heap.pin_segment(a));
  it.check();
  const Address c = it.take(4 * MiB);
  CHECK(it.device.segments() == 2);  // the 12 MiB left in the first do not serve
  it.free(a);
  it.check();
  CHECK(it.take(4 * MiB) == c + 4 * MiB);
  CHECK(it.heap.trim(0) == 0);
  it.free(b);
  it.check();
  CHECK(it.heap.trim(0) == 20 * MiB);
  CHECK(it.device.segments() == 1);
  CHECK_FALSE(it.heap.pin_segment(a));
  it.check();
}

TEST_CASE("native: under a limit, dead blocks of average age and more are collected") {
  AllocationConfig config;
  config.garbage_collection_threshold = 0.8;
  NativeOptions options;
  options.allowed = 1000 * MiB;
  Native it(options, config);
  std::vector<Address> blocks;
  for (int i = 0; i < 9; ++i) blocks.push_back(it.take(100 * MiB));
  for (const Address block : blocks) it.free(block);
  it.take(150 * MiB);
  CHECK(it.heap.counters().device_free == 9);
  CHECK(it.heap.counters().reserved == 150 * MiB);
  CHECK(it.heap.counters().retries == 0);
  it.check();
}

TEST_CASE("native: a limit refuses before the device is asked") {
  NativeOptions options;
  options.allowed = 30 * MiB;
  Native it(options);
  it.take(20 * MiB);
  const std::uint64_t asked = it.device.calls(Call::allocate_segment);
  const Grant refused = it.heap.allocate(20 * MiB, 1);
  CHECK(refused.address == 0);
  CHECK(refused.status.outcome == Outcome::over_limit);
  CHECK(it.device.calls(Call::allocate_segment) == asked);
  CHECK(it.heap.counters().ooms == 1);
  CHECK(it.heap.allocate(unlimited, 1).address == 0);
}

TEST_CASE("native: expandable segments are unmapped only when nothing runs on them") {
  AllocationConfig config;
  config.expandable_segments = true;
  Native it({}, config);
  const Address block = it.take(40 * MiB);
  it.device.submit(1, block, 40 * MiB);
  it.free(block);
  CHECK(it.heap.trim(0) == 40 * MiB);
  CHECK(it.device.used() == 0);
  it.check();
}

TEST_CASE("with memory to spare several frees share a fence") {
  SimulatedDevice device;
  NativeOptions options;
  options.reuse = NativeOptions::Reuse::fenced;
  options.fence_spare = 64 * MiB;
  NativeHeap heap(device, {}, options);
  const auto pairs = [&](int count) {
    for (int i = 0; i < count; ++i) heap.free(heap.allocate(20 * MiB, 0).address, 0);
  };
  pairs(10);
  CHECK(heap.counters().reserved == 60 * MiB);  // three blocks take turns
  const std::uint64_t before = device.calls(Call::record);
  pairs(30);
  CHECK(device.calls(Call::record) - before == 10);
  CHECK(heap.counters().reserved == 60 * MiB);
}
