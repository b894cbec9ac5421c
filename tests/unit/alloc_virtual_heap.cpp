// VirtualHeap: growth by what is missing, memory given back, streams that share.
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/virtual_support.hpp"

using namespace fragshim;

TEST_CASE("stream-ordered: the heap grows by what is missing") {
  Virtual it;
  const Address a = it.take(10 * MiB);
  CHECK(it.reserved() == 10 * MiB);
  it.free(a);
  CHECK(it.take(14 * MiB) == a);
  CHECK(it.reserved() == 14 * MiB);
  it.check();
}

TEST_CASE("stream-ordered: fewer addresses are taken where there are not so many") {
  SimulatedOptions few;
  few.address_space = 16 * GiB;
  SimulatedDevice device(few);
  VirtualHeap heap(device, {});
  const Address block = heap.allocate(3 * GiB, 1).address;
  REQUIRE(block != 0);
  CHECK(heap.contains(block + 3 * GiB - 1));
  CHECK_FALSE(heap.contains(block + 16 * GiB));
  REQUIRE(heap.free(block, 1).ok());
}

TEST_CASE("stream-ordered: holes left by a trim are filled again") {
  Virtual it;
  const Address a = it.take(8 * MiB);
  const Address b = it.take(8 * MiB);
  it.free(a);
  CHECK(it.heap.trim(0) == 8 * MiB);
  CHECK_FALSE(it.device.mapped_physical(a));
  CHECK(it.take(6 * MiB) == a);
  CHECK(it.reserved() == 16 * MiB);  // up to the peak in whole units
  CHECK(it.device.mapped_physical(b));
  it.check();
}

TEST_CASE("stream-ordered: trim keeps what it is told to keep") {
  Virtual it;
  std::vector<Address> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(it.take(4 * MiB));
  for (const Address block : blocks) it.free(block);
  CHECK(it.heap.trim(64 * MiB) == 0);
  CHECK(it.heap.trim(12 * MiB) == 20 * MiB);
  CHECK(it.reserved() == 12 * MiB);
  CHECK(it.heap.trim(0) == 12 * MiB);
  it.check();
}

TEST_CASE("stream-ordered: trim waits for work that was submitted before a free") {
  Virtual it;
  const Address block = it.take(8 * MiB);
  it.device.submit(1, block, 8 * MiB);
  it.free(block);
  CHECK(it.heap.trim(0) == 8 * MiB);
  it.check();
}

TEST_CASE("stream-ordered: a chunk under free blocks of several streams goes back") {
  Virtual it;
  const Address a = it.take(MiB, 1);
  it.free(a, 1);
  const Address b = it.take(512 * KiB, 2);  // out of the same chunk, taken over from the first
  REQUIRE(b == a);
  it.free(b, 2);
  CHECK(it.heap.trim(0) == 2 * MiB);
  CHECK(it.device.used() == 0);
  it.check();
}

TEST_CASE("stream-ordered: pieces of a chunk that the device keeps stay good") {
  Virtual it;
  const Address a = it.take(MiB, 1);
  it.free(a, 1);
  it.free(it.take(512 * KiB, 2), 2);
  it.device.fail_next(Call::unmap, 1, {Outcome::failed});
  CHECK(it.heap.trim(0) == 0);
  it.check();
  CHECK(it.take(512 * KiB, 2) == a);
  it.check();
}

TEST_CASE("stream-ordered: another stream's block is taken over behind its work") {
  Virtual it;
  const Address block = it.take(8 * MiB, 1);
  SECTION("which is done") {
    it.free(block, 1);
    CHECK(it.take(8 * MiB, 2) == block);
    CHECK(it.device.calls(Call::stream_wait) == 0);
  }
  SECTION("which is not: the taker waits on the device, not the host") {
    it.device.submit(1, block, 8 * MiB);
    it.free(block, 1);
    CHECK(it.take(8 * MiB, 2) == block);
    CHECK(it.device.calls(Call::stream_wait) == 1);
    CHECK(it.device.order().pending() == 1);
    it.device.submit(2, block, 8 * MiB);
  }
  SECTION("unless no order can be had") {
    it.device.submit(1, block, 8 * MiB);
    it.free(block, 1);
    it.device.fail_every(Call::record, 1, {Outcome::unsupported});
    const Address other = it.take(8 * MiB, 2);
    CHECK(other != block);
    it.device.submit(2, other, 8 * MiB);
  }
  it.check();
}

TEST_CASE("stream-ordered: a block freed on another stream comes home behind that stream") {
  Virtual it;
  const Address block = it.take(8 * MiB, 1);
  it.device.order().order_after(2, it.device.order().record(1));
  it.device.submit(2, block, 8 * MiB);
  it.free(block, 2);
  CHECK(it.heap.usage().pending == 8 * MiB);
  SECTION("when the stream has passed it") {
    it.device.complete(2);
    CHECK(it.take(8 * MiB, 1) == block);
  }
  SECTION("at once, by waiting on the device, where a large request would grow the heap") {
    const Address again = it.take(8 * MiB, 1);
    CHECK(again == block);
    it.device.submit(1, again, 8 * MiB);  // behind stream 2's work, or a hazard
  }
  CHECK(it.heap.usage().pending == 0);
  CHECK(it.heap.counters().waits == 0);
  it.check();
}

TEST_CASE("stream-ordered: a small request grows rather than wait for another stream") {
  Virtual it;
  const Address block = it.take(2 * KiB, 1);
  const Address rest = it.take(1 * MiB, 1);
  it.device.order().order_after(2, it.device.order().record(1));
  it.device.submit(2, block, 2 * KiB);
  it.free(block, 2);
  it.free(rest, 1);
  const Address other = it.take(2 * KiB, 1);
  CHECK(other != block);
  CHECK(it.heap.usage().pending == 2 * KiB);
  it.device.complete(2);
  it.heap.trim(unlimited);
  CHECK(it.heap.usage().pending == 0);
  it.check();
}

TEST_CASE("stream-ordered: blocks on their way home are awaited before a request is refused") {
  Virtual it(16 * MiB);
  const Address block = it.take(16 * MiB, 1);
  it.device.order().order_after(2, it.device.order().record(1));
  it.device.submit(2, block, 16 * MiB);
  it.free(block, 2);
  std::uint64_t waits = 1;
  SECTION("on the device, with a fence") { waits = 0; }
  SECTION("by the host, where the device cannot") {
    it.device.fail_every(Call::stream_wait, 1, {Outcome::failed});
  }
  SECTION("by the host, without a fence") {
    it.device.fail_every(Call::record, 1, {Outcome::unsupported});
  }
  CHECK(it.take(16 * MiB, 1) == block);
  CHECK(it.heap.counters().ooms == 0);
  CHECK(it.heap.counters().waits == waits);
  it.check();
}

TEST_CASE("stream-ordered: what ended streams leave becomes usable, and they are forgotten") {
  Virtual it;
  for (StreamId stream = 1; stream <= 200; ++stream) {
    const Address block = it.take(4 * MiB, stream);
    it.device.submit(stream, block, 4 * MiB);
    it.free(block, stream);
    it.heap.forget_stream(stream);
    it.device.order().remove_stream(stream);
    it.device.complete_all();
  }
  CHECK(it.reserved() == 4 * MiB);
  CHECK(it.heap.usage().streams <= 2);
  CHECK(it.device.live_fences() <= 2);
  it.check();
}

TEST_CASE("stream-ordered: what an ended stream leaves is not used before its work is done") {
  Virtual it;
  const Address block = it.take(8 * MiB, 1);
  it.device.submit(1, block, 8 * MiB);
  it.free(block, 1);
  it.heap.forget_stream(1);
  it.device.order().remove_stream(1);
  const Address other = it.take(8 * MiB, 2);
  CHECK(other != block);
  it.device.submit(2, other, 8 * MiB);
  it.device.complete_all();
  CHECK(it.take(8 * MiB, 2) == block);
  it.check();
}

TEST_CASE("stream-ordered: max_split_size is obeyed") {
  AllocationConfig config;
  config.max_split_size = 32 * MiB;
  Virtual it(unlimited, config);
  const Address large = it.take(40 * MiB);
  it.free(large);
  const Address small = it.take(8 * MiB);
  CHECK(small != large);  // small requests do not nibble at it
  CHECK(it.take(36 * MiB) == large);
  CHECK(it.heap.counters().allocated == 48 * MiB);  // and it is not split
  it.check();
}

TEST_CASE("stream-ordered: near the limit nothing is mapped beyond the request") {
  Virtual it(4 * GiB + 2 * MiB);
  it.take(4 * GiB);  // chunks of 16 MiB from here on
  CHECK(it.take(2 * MiB) != 0);
  CHECK(it.reserved() == 4 * GiB + 2 * MiB);
  it.check();
}

TEST_CASE("stream-ordered: chunks are halved, twice, once memory has been short") {
  VirtualOptions options;
  options.chunks = {unlimited, 16 * MiB, 16 * MiB};
  Virtual it(64 * MiB, {}, options);
  for (const std::size_t chunks : {4, 8, 16, 16}) {
    const Address all = it.take(64 * MiB);
    CHECK(it.device.physicals() == chunks);
    CHECK(it.heap.allocate(2 * MiB, 1).address == 0);
    it.free(all);
    it.heap.trim(0);
    it.check();
  }
}

TEST_CASE("stream-ordered: chunks are half as large while much is held beyond the peak") {
  VirtualOptions options;
  options.chunks = {32, 2 * MiB, unlimited};
  for (const bool wasteful : {false, true}) {
    Virtual it(unlimited, {}, options);
    it.take(1 * GiB);
    it.free(it.take(64 * MiB));  // two chunks of 32 MiB
    if (wasteful) it.heap.reset_peaks(true, false);
    const std::size_t before = it.device.physicals();
    it.take(192 * MiB);
    CHECK(it.device.physicals() - before == (wasteful ? 8 : 4));
    it.check();
  }
}

TEST_CASE("stream-ordered: chunks are large where an emptied cache is filled again") {
  VirtualOptions options;
  options.chunks = {1024, 2 * MiB, unlimited};  // of 12 GiB: 12 MiB
  Virtual it(unlimited, {}, options);
  it.take(4 * GiB);
  it.free(it.take(8 * GiB));
  CHECK(it.heap.trim(0) == 8 * GiB);
  const auto chunks_of = [&it](Bytes size) {
    const std::size_t before = it.device.physicals();
    it.take(size);
    return it.device.physicals() - before;
  };
  CHECK(chunks_of(512 * MiB) == 2);
  CHECK(chunks_of(7 * GiB + 256 * MiB) == 31);  // up to 240 MiB each
  CHECK(chunks_of(240 * MiB) == 19);            // nearly as much as ever: as small as at first
  it.check();
}

TEST_CASE("stream-ordered: a block that is not split is no longer than it must be") {
  AllocationConfig config;
  config.max_split_size = 32 * MiB;
  Virtual it(unlimited, config);
  it.take(16 * GiB);  // chunks of 64 MiB from here on
  const Address block = it.take(34 * MiB);
  CHECK(it.heap.counters().allocated == 16 * GiB + 34 * MiB);
  it.free(block);
  CHECK(it.take(34 * MiB) == block);
  it.check();
}

TEST_CASE("stream-ordered: what was freed on a dead stream comes home without a fence") {
  Virtual it;
  const Address block = it.take(8 * MiB, 1);
  it.free(block, 2);
  it.device.fail_every(Call::record, 1, {Outcome::unsupported});
  it.heap.forget_stream(2);
  CHECK(it.heap.usage().pending == 8 * MiB);
  CHECK(it.heap.trim(0) == 8 * MiB);
  CHECK(it.heap.usage().pending == 0);
  it.check();
}

TEST_CASE("stream-ordered: growth that fails half way leaves nothing behind") {
  Virtual it;
  it.take(2 * MiB);
  const Call call = GENERATE(Call::create, Call::map);
  it.device.fail_every(call, 1, {Outcome::out_of_memory});
  CHECK(it.heap.allocate(16 * MiB, 1).address == 0);
  CHECK(it.reserved() == 2 * MiB);
  it.check();
  it.device.clear_failures();
  CHECK(it.take(16 * MiB) != 0);
  it.check();
}
