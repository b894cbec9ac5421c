// VirtualHeap gathering free chunks: what moves, what stays, and when old addresses go.
#include <vector>

#include "core/alloc/virtual_heap.hpp"
#include "core/device/simulated.hpp"
#include "tests/catch.hpp"
#include "tests/unit/virtual_support.hpp"

using namespace fragshim;

namespace {

constexpr StreamId here = 1;
constexpr StreamId there = 2;

/// Eight blocks of 64 MiB side by side, of which every other one is then freed: 256 MiB lie free,
/// and no two of them touch.
struct Gaps : Virtual {
  std::vector<Address> blocks;

  explicit Gaps(StreamId gap_stream = here) {
    for (int i = 0; i < 8; ++i) blocks.push_back(take(64 * MiB, i % 2 == 0 ? here : gap_stream));
    for (std::size_t i = 1; i < blocks.size(); i += 2) {
      device.submit(gap_stream, blocks[i], 64 * MiB);
      free(blocks[i], gap_stream);
    }
    REQUIRE(reserved() <= 512 * MiB + 16 * MiB);
  }
  std::uint64_t stitches() const { return heap.counters().stitches; }
};

}  // namespace

TEST_CASE("gather: pieces that lie apart serve one large request") {
  Gaps it;
  const Bytes before = it.reserved();
  const Address large = it.take(192 * MiB, here);
  it.device.submit(here, large, 192 * MiB);  // all of it is there
  CHECK(it.reserved() <= before + 4 * MiB);
  CHECK(it.stitches() == 1);
  it.check();
}

TEST_CASE("gather: old addresses stay until the device has left them") {
  Gaps it;
  const std::size_t mappings = it.device.mappings();
  it.take(192 * MiB, here);
  const std::size_t doubled = it.device.mappings();
  CHECK(doubled > mappings);
  it.take(300 * MiB, here);  // grows; what ran on the old addresses is still pending
  CHECK(it.device.mappings() > doubled);
  it.device.complete_all();
  it.take(300 * MiB, here);
  CHECK(it.device.physicals() == it.device.mappings());
  it.check();
}

TEST_CASE("gather: another stream's memory moves behind a stream wait") {
  Gaps it(there);
  const std::uint64_t waits = it.device.calls(Call::stream_wait);
  const Address large = it.take(192 * MiB, here);
  CHECK(it.device.calls(Call::stream_wait) == waits + 1);
  it.device.submit(here, large, 192 * MiB);
  CHECK(it.stitches() == 1);
  it.check();
}

TEST_CASE("gather: a stream that cannot be made to wait takes no other stream's memory") {
  Gaps it(there);
  it.device.fail_every(Call::record, 1, {Outcome::unsupported});
  const Address large = it.take(192 * MiB, here);
  it.device.clear_failures();
  it.device.submit(here, large, 192 * MiB);
  CHECK(it.stitches() == 0);
  it.check();
}

TEST_CASE("gather: what a free block above a hole has too much can move into the hole") {
  Virtual it;
  it.take(64 * MiB);
  const Address first = it.take(64 * MiB);
  const Address second = it.take(128 * MiB);
  it.take(64 * MiB);
  it.free(first);
  it.take(80 * MiB);  // the first one's memory moves, and leaves a hole below the second one
  it.device.complete_all();
  it.free(second);
  REQUIRE(it.reserved() <= 344 * MiB);
  const Address large = it.take(150 * MiB);  // 22 MiB more than ever before
  it.device.submit(here, large, 150 * MiB);
  CHECK(it.reserved() <= 380 * MiB);
  it.check();
}

TEST_CASE("gather: at the limit of the card it serves what creation cannot") {
  SimulatedOptions options;
  options.capacity = 528 * MiB;
  SimulatedDevice device(options);
  VirtualHeap heap(device, AllocationConfig{});
  std::vector<Address> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(heap.allocate(64 * MiB, here).address);
  for (std::size_t i = 1; i < blocks.size(); i += 2) REQUIRE(heap.free(blocks[i], here).ok());
  CHECK(heap.allocate(250 * MiB, here).status.ok());
  CHECK(heap.counters().retries == 0);
  CHECK(device.hazards() == 0);
}

TEST_CASE("gather: blocks that a split limit keeps whole hide no smaller ones") {
  SimulatedDevice device;
  AllocationConfig config;
  config.max_split_size = 100 * MiB;
  VirtualHeap heap(device, config);
  std::vector<Address> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(heap.allocate(48 * MiB, here).address);
  REQUIRE(heap.free(heap.allocate(400 * MiB, here).address, here).ok());
  for (std::size_t i = 1; i < blocks.size(); i += 2) REQUIRE(heap.free(blocks[i], here).ok());
  const Bytes before = heap.counters().reserved;
  REQUIRE(heap.allocate(90 * MiB, here).status.ok());
  CHECK(heap.counters().stitches == 1);
  CHECK(heap.counters().reserved <= before + 4 * MiB);
}

TEST_CASE("gather: chunks that the device does not map a second time serve where they are") {
  Gaps it;
  it.front.refuse_one_in(4);
  const Bytes before = it.reserved();
  const Address large = it.take(192 * MiB, here);
  it.device.submit(here, large, 192 * MiB);
  it.check();
  CHECK(it.stitches() == 1);
  CHECK(it.reserved() <= before + 4 * MiB);
  const int refusals = it.front.refusals();
  CHECK(refusals > 0);
  it.take(100 * MiB, here);  // none of them is tried again
  CHECK(it.front.refusals() == refusals);
  for (std::size_t i = 0; i < it.blocks.size(); i += 2) it.free(it.blocks[i], here);
  it.free(large, here);
  it.heap.trim(0);
  CHECK(it.reserved() <= 112 * MiB);  // they go back as any other
  it.check();
}

TEST_CASE("gather: a chunk that cannot be moved goes once the device has left it") {
  Gaps it;
  it.front.refuse_one_in(4);
  it.take(192 * MiB, here);
  const std::uint64_t created = it.device.calls(Call::create);
  const std::uint64_t destroyed = it.device.calls(Call::destroy);
  const Bytes before = it.reserved();
  it.take(32 * MiB, here);  // comes with new memory; what it could not get is on its way out
  CHECK(it.device.calls(Call::create) > created);
  CHECK(it.device.calls(Call::destroy) == destroyed);
  it.check();
  it.device.complete_all();
  it.take(64 * MiB, here);
  CHECK(it.device.calls(Call::destroy) > destroyed);
  CHECK(it.reserved() < before + 96 * MiB);
  it.check();
}

TEST_CASE("gather: a device that maps nothing a second time is not asked for ever") {
  Gaps it;
  it.front.refuse_one_in(1);
  for (int i = 0; i < 3; ++i) it.heap.allocate(192 * MiB, here);
  CHECK(it.front.refusals() <= 50);
  it.check();
}

TEST_CASE("gather: a device that fails in the middle leaves everything as it was") {
  for (const Call call : {Call::map, Call::create}) {
    for (std::uint64_t nth = 1; nth <= 8; ++nth) {
      Gaps it;
      it.device.fail_next(call, nth, {Outcome::failed});
      it.heap.allocate(260 * MiB, here);
      it.device.clear_failures();
      it.check();
      it.device.complete_all();
      const Address large = it.take(260 * MiB, here);
      it.device.submit(here, large, 260 * MiB);
      it.check();
    }
  }
}
