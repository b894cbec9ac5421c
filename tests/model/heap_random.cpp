// Heaps under random programs, with and without a device that fails.
#include "tests/model/heap_model.hpp"
#include "tests/model/seeds.hpp"

using namespace fragshim;
using namespace fragshim::model;

namespace {

/// A configuration from the seed: every rule is in force in some of them.
AllocationConfig some_config(Choices& choices) {
  AllocationConfig config;
  if (choices.one_in(3)) {
    config.max_split_size = (20 + choices.below(10)) * MiB;
    if (choices.one_in(2)) config.max_non_split_rounding = 21 * MiB;
  }
  if (choices.one_in(3)) config.roundup_power2_divisions.fill(1u << choices.below(5));
  if (choices.one_in(4)) config.large_segment_size = 12 * MiB;
  if (choices.one_in(3)) config.garbage_collection_threshold = 0.6;
  return config;
}

Setup some_setup(HeapKind kind, Choices& choices) {
  Setup setup;
  setup.kind = kind;
  setup.config = some_config(choices);
  constexpr Bytes capacities[] = {24 * MiB, 64 * MiB, 160 * MiB, 512 * MiB, 4 * GiB};
  setup.capacity = capacities[choices.below(5)];
  setup.largest = std::max(setup.capacity / 4, 24 * MiB);
  setup.least_chunk = choices.one_in(2) ? 2 * MiB : 12 * MiB;
  if (setup.native() && choices.one_in(2)) {
    setup.allowed = setup.capacity - choices.below(setup.capacity / 2);
  }
  return setup;
}

struct Moves {
  std::uint64_t stitches = 0;  // how often free chunks were moved, in all programs together
  int refusals = 0;            // by the device
};

Moves run(HeapKind kind, std::uint64_t seeds, int steps, std::uint64_t fault_in,
          std::uint64_t stubborn_in = 0) {
  Moves moves;
  for_each_seed(seeds, [&](std::uint64_t seed, bool trace) {
    SeededChoices choices(seed * 5 + static_cast<std::uint64_t>(kind));
    Setup setup = some_setup(kind, choices);
    setup.fault_in = fault_in;
    setup.stubborn_in = stubborn_in;
    HeapModel model(setup, choices, trace);
    for (int i = 0; i < steps; ++i) model.step();
    model.finish();
    moves.stitches += model.heap().counters().stitches;
    moves.refusals += model.refusals();
  });
  return moves;
}

/// A seed that is replayed alone proves nothing of how often.
bool alone() { return std::getenv("FRAGSHIM_SEED") != nullptr; }

}  // namespace

TEST_CASE("random programs: native, in stream order", "[heap]") {
  run(HeapKind::in_order, 60, 600, 0);
}
TEST_CASE("random programs: native, fenced", "[heap]") { run(HeapKind::fenced, 60, 600, 0); }
TEST_CASE("random programs: native, expandable", "[heap]") {
  run(HeapKind::expandable, 60, 600, 0);
}
TEST_CASE("random programs: stream-ordered", "[heap]") {
  const Moves moves = run(HeapKind::stream_ordered, 100, 800, 0);
  CHECK((moves.stitches > 100 || alone()));
}
TEST_CASE("random programs: stitched, for all streams", "[heap]") {
  const Moves moves = run(HeapKind::stitched, 60, 800, 0);
  CHECK((moves.stitches > 100 || alone()));
}

TEST_CASE("random programs on a failing device: native, in stream order", "[heap][faults]") {
  run(HeapKind::in_order, 40, 500, 8);
}
TEST_CASE("random programs on a failing device: native, fenced", "[heap][faults]") {
  run(HeapKind::fenced, 40, 500, 8);
}
TEST_CASE("random programs on a failing device: native, expandable", "[heap][faults]") {
  run(HeapKind::expandable, 40, 500, 8);
}
TEST_CASE("random programs on a failing device: stream-ordered", "[heap][faults]") {
  const Moves moves = run(HeapKind::stream_ordered, 80, 600, 8);
  CHECK((moves.stitches > 100 || alone()));
}
TEST_CASE("random programs on a failing device: stitched, for all streams", "[heap][faults]") {
  const Moves moves = run(HeapKind::stitched, 60, 600, 8);
  CHECK((moves.stitches > 100 || alone()));
}

TEST_CASE("random programs on a device that does not map all memory twice", "[heap][faults]") {
  for (const HeapKind kind : {HeapKind::stream_ordered, HeapKind::stitched}) {
    const Moves moves = run(kind, 60, 600, 0, 9);
    CHECK((moves.stitches > 100 || alone()));
    CHECK((moves.refusals > 100 || alone()));
  }
}
