// What a walk over a heap tells about a failure: the largest blocks in and out of reach, the pins.
#include <vector>

#include "core/record/failure.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

using State = BlockState;

/// A heap that only shows the blocks it was given.
class ShownHeap final : public Heap {
 public:
  explicit ShownHeap(std::vector<BlockView> blocks) : blocks_(std::move(blocks)) {}
  Grant allocate(Bytes, StreamId) noexcept override { return {0, {Outcome::out_of_memory, 0}}; }
  Status free(Address, StreamId) noexcept override { return {Outcome::not_owned, 0}; }
  Bytes trim(Bytes) noexcept override { return 0; }
  bool contains(Address) const noexcept override { return false; }
  Counters counters() const noexcept override { return {}; }
  Usage usage() const noexcept override {
    Usage usage;
    usage.segments = 7;
    return usage;
  }
  void walk(BlockVisitor& visitor) const override {
    for (const BlockView& block : blocks_) visitor.visit(block);
    if (throws) throw 1;
  }
  void reset_peaks(bool, bool) noexcept override {}
  bool check(std::string*) const override { return true; }
  bool throws = false;

 private:
  std::vector<BlockView> blocks_;
};

/// Blocks of one segment, one behind the other.
struct Builder {
  Address segment = 0;
  Address next = 0;
  std::vector<BlockView> blocks;

  Builder& begin(Address at) {
    segment = next = at;
    return *this;
  }
  Builder& add(State state, Bytes size, StreamId stream = 1) {
    blocks.push_back({next, size, state == State::live ? size : 0, segment, stream, state});
    next += size;
    return *this;
  }
};

}  // namespace

TEST_CASE("free blocks are in reach by stream and state", "[failure]") {
  Builder b;
  b.begin(1 * GiB).add(State::free, 3 * MiB, 1).add(State::free, 9 * MiB, 2);
  b.begin(2 * GiB).add(State::pending, 11 * MiB, 1).add(State::unmapped, 64 * MiB, 1);
  const FailureEvidence e = gather_evidence(ShownHeap(b.blocks), 20 * MiB, 1);
  CHECK(e.request == 20 * MiB);
  CHECK(e.usage.segments == 7);
  CHECK(e.largest_reachable == 3 * MiB);
  CHECK(e.largest_bound == 11 * MiB);
  CHECK(e.pin_count == 0);
}

TEST_CASE("a live block pins the free bytes on both its sides, within its segment", "[failure]") {
  Builder b;
  b.begin(1 * GiB).add(State::free, 4 * MiB).add(State::pending, 2 * MiB).add(State::live, 512);
  b.add(State::free, 8 * MiB).add(State::live, 1 * MiB);
  b.begin(b.next).add(State::free, 100 * MiB);  // the next segment, at the very next address
  const FailureEvidence e = gather_evidence(ShownHeap(b.blocks), 1, 1);
  REQUIRE(e.pin_count == 2);
  CHECK(e.pins[0].address == 1 * GiB + 6 * MiB);
  CHECK(e.pins[0].size == 512);
  CHECK(e.pins[0].pinned == 14 * MiB);
  CHECK(e.pins[1].size == 1 * MiB);
  CHECK(e.pins[1].pinned == 8 * MiB);
}

TEST_CASE("unmapped stretches are no pinned memory", "[failure]") {
  Builder b;
  b.begin(1 * GiB).add(State::live, 512).add(State::free, 1 * MiB).add(State::unmapped, 1 * GiB);
  b.add(State::free, 2 * MiB).add(State::live, 1 * KiB);
  const FailureEvidence e = gather_evidence(ShownHeap(b.blocks), 1, 1);
  REQUIRE(e.pin_count == 2);
  CHECK(e.pins[0].pinned == 2 * MiB);
  CHECK(e.pins[1].pinned == 1 * MiB);
}

TEST_CASE("only the worst five pins stay, small blocks first", "[failure]") {
  Builder b;
  for (Bytes i = 1; i <= 9; ++i) {
    const Bytes order = i * 5 % 9 + 1;  // 1 … 9, mixed
    b.begin(order * GiB).add(State::live, order == 9 ? 64 * MiB : 512);
    b.add(State::free, order * MiB);
  }
  const FailureEvidence e = gather_evidence(ShownHeap(b.blocks), 1, 1);
  REQUIRE(e.pin_count == FailureEvidence::max_pins);
  for (std::size_t i = 0; i < e.pin_count; ++i) CHECK(e.pins[i].pinned == (8 - i) * MiB);
}

TEST_CASE("a walk that fails leaves what it had seen", "[failure]") {
  Builder b;
  b.begin(1 * GiB).add(State::free, 3 * MiB);
  ShownHeap heap(b.blocks);
  heap.throws = true;
  CHECK(gather_evidence(heap, 1, 1).largest_reachable == 3 * MiB);
}
