// VirtualHeap lending the free ends of chunks: what is served, and how it comes together again.
#include <random>
#include <utility>
#include <vector>

#include "core/alloc/virtual_heap.hpp"
#include "core/device/simulated.hpp"
#include "tests/catch.hpp"
#include "tests/unit/virtual_support.hpp"

using namespace fragshim;

namespace {

constexpr StreamId here = 1;
constexpr StreamId there = 2;

VirtualOptions chunks_of_16() {
  VirtualOptions options;
  options.chunks = {unlimited, 16 * MiB, 16 * MiB};
  return options;
}

/// Nine blocks of 60 MiB side by side in chunks of 16, of which every other one is then freed. Of
/// each gap 48 MiB are whole chunks, 192 in all. The rest are upper ends of 4 and 12 MiB and lower
/// ends of 8.
struct Ends : Virtual {
  std::vector<Address> blocks;

  explicit Ends(Bytes capacity = unlimited) : Virtual(capacity, {}, chunks_of_16()) {
    free(take(540 * MiB));
    for (int i = 0; i < 9; ++i) blocks.push_back(take(60 * MiB));
    for (const std::size_t i : {1, 3, 5, 7}) {
      device.submit(here, blocks[i], 60 * MiB);
      free(blocks[i]);
    }
  }
  /// Takes and uses it, and sees that nothing was created for it.
  Address take_from_ends(Bytes size) {
    const Bytes before = reserved();
    const Address address = take(size);
    CHECK(reserved() == before);
    use(address, size);
    return address;
  }
  void use(Address address, Bytes size) {
    device.submit(here, address, size);
    check();
  }
  /// How many loans there are, once the old addresses of what was moved are gone.
  std::size_t loans() {
    device.complete_all();
    take(62 * MiB);  // grows, and looks after them
    return device.mappings() - device.physicals();
  }
};

}  // namespace

TEST_CASE("lend: ends of pinned chunks serve what whole ones do not") {
  struct Case {
    Bytes size;
    std::size_t loans;
  };
  for (const auto& [size, loans] : {Case{192 * MiB, 0},
                                    {200 * MiB, 1},
                                    {202 * MiB, 1},
                                    {204 * MiB, 1},
                                    {206 * MiB, 2},
                                    {212 * MiB, 2}}) {
    Ends it;
    for (const std::size_t i : {0, 2, 4, 6, 8}) it.device.submit(here, it.blocks[i], 60 * MiB);
    const Address large = it.take_from_ends(size);
    CHECK(it.heap.counters().stitches == 1);
    CHECK(it.loans() == loans);
    for (const std::size_t i : {0, 2, 4, 6, 8}) it.use(it.blocks[i], 60 * MiB);
    it.use(large, size);
  }
}

TEST_CASE("lend: nothing is lent to a request of few chunks") {
  Ends it;
  it.take_from_ends(192 * MiB);  // the whole chunks
  const Bytes before = it.reserved();
  CHECK(it.loans() == 0);
  CHECK(it.reserved() > before);
  it.check();
}

TEST_CASE("lend: whichever end of a loan is freed first, the chunk comes together again") {
  for (const bool borrower_first : {true, false}) {
    Ends it;
    const Address large = it.take_from_ends(200 * MiB);
    if (borrower_first) it.free(large);
    for (const std::size_t i : {0, 2, 4, 6, 8}) it.free(it.blocks[i]);
    if (!borrower_first) it.free(large);
    it.check();
    const Bytes all = it.reserved();
    it.take_from_ends(all);
    it.device.complete_all();
    it.take(MiB);
    it.device.complete_all();
    it.heap.trim(0);
    it.check();
  }
}

TEST_CASE("lend: an end that was lent is lent on") {
  Ends it;
  const Address large = it.take_from_ends(200 * MiB);
  // What pinned the lenders goes; what they lent is still in use.
  for (const std::size_t i : {0, 2, 4}) it.free(it.blocks[i]);
  const Address second = it.take_from_ends(150 * MiB);
  it.use(large, 200 * MiB);
  it.free(large);
  it.take_from_ends(190 * MiB);
  it.use(second, 150 * MiB);
}

TEST_CASE("lend: chunks stay whole through a long life of loans") {
  VirtualOptions options = chunks_of_16();
  options.chunks = {unlimited, 4 * MiB, 4 * MiB};
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Virtual it(96 * MiB, {}, options);
    std::vector<Address> live;
    for (int step = 0; step < 1000; ++step) {
      const Bytes size =
          random() % 3 == 0 ? (16 + random() % 16) * MiB : (1 + random() % 24) * MiB / 4;
      const Grant grant = it.heap.allocate(size, here);
      if (grant.status.ok()) live.push_back(grant.address);
      int frees = !grant.status.ok() || live.size() > 24 ? 3 : static_cast<int>(random() % 2);
      for (; frees > 0 && !live.empty(); --frees) {
        std::swap(live[random() % live.size()], live.back());
        it.free(live.back());
        live.pop_back();
      }
      it.device.complete_all();
      it.check();
    }
  }
}

TEST_CASE("lend: trim brings shared chunks together, and gives all of them back") {
  Ends it;
  const Address large = it.take_from_ends(200 * MiB);
  for (const std::size_t i : {0, 2, 4, 6, 8}) it.free(it.blocks[i]);
  it.free(large);
  CHECK(it.heap.usage().releasable == it.reserved());
  it.device.complete_all();
  it.heap.trim(0);
  CHECK(it.reserved() == 0);
  CHECK(it.device.physicals() == 0);
  CHECK(it.device.mappings() == 0);
  it.check();
}

TEST_CASE("lend: nothing is lent where no fence spans all streams") {
  SimulatedOptions options;
  options.context_fences = false;
  SimulatedDevice device(options);
  VirtualHeap heap(device, AllocationConfig{}, chunks_of_16());
  std::vector<Address> blocks(9);
  REQUIRE(heap.free(heap.allocate(540 * MiB, here).address, here).ok());
  for (Address& block : blocks) block = heap.allocate(60 * MiB, here).address;
  for (const std::size_t i : {1, 3, 5, 7}) REQUIRE(heap.free(blocks[i], here).ok());
  const Bytes before = heap.counters().reserved;
  REQUIRE(heap.allocate(200 * MiB, here).status.ok());
  CHECK(heap.counters().reserved > before);
}

TEST_CASE("lend: other streams' ends are not lent") {
  Ends it;
  const Bytes before = it.reserved();
  it.take(220 * MiB, there);
  CHECK(it.reserved() > before);
  it.check();
}

TEST_CASE("lend: at the limit of the card it serves what creation cannot") {
  Ends it(560 * MiB);
  const Address large = it.take(210 * MiB);
  CHECK(it.heap.counters().retries == 0);
  it.use(large, 210 * MiB);
}

TEST_CASE("lend: a request that would fail borrows, however small it is") {
  Ends it(540 * MiB);
  it.take_from_ends(192 * MiB);  // the whole chunks
  const Address small = it.take_from_ends(18 * MiB);
  CHECK(it.heap.counters().retries == 1);
  it.free(small);
  it.use(it.take_from_ends(18 * MiB), 18 * MiB);
}

TEST_CASE("lend: a chunk that the device does not map a second time is not lent") {
  for (const std::uint64_t one_in : {1, 2, 3}) {
    Ends it;
    it.take_from_ends(192 * MiB);  // the whole chunks
    it.front.refuse_one_in(one_in);
    for (int i = 0; i < 3; ++i) it.use(it.take(66 * MiB), 66 * MiB);
    CHECK(it.front.refusals() > 0);
    CHECK(it.front.refusals() <= 8);  // there are so many ends
  }
}

TEST_CASE("lend: a device that fails in the middle leaves everything as it was") {
  for (std::uint64_t nth = 1; nth <= 16; ++nth) {
    Ends it;
    it.device.fail_next(Call::map, nth, {Outcome::failed});
    it.heap.allocate(200 * MiB, here);
    it.device.clear_failures();
    it.check();
    it.heap.trim(0);
    it.check();
    it.use(it.take(200 * MiB), 200 * MiB);
  }
}
