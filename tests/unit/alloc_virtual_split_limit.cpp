// max_split_size_mb on virtual memory: big free blocks stay whole, and memory does not pile up.
#include "core/alloc/virtual_heap.hpp"
#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

AllocationConfig limited_to(Bytes size) {
  AllocationConfig config;
  config.max_split_size = size;
  return config;
}

}  // namespace

TEST_CASE("a free block of max_split_size or more serves no smaller request") {
  SimulatedDevice device;
  VirtualHeap heap(device, limited_to(128 * MiB));
  const Address big = heap.allocate(200 * MiB, 0).address;
  heap.free(big, 0);
  const Address small = heap.allocate(10 * MiB, 0).address;
  CHECK((small < big || small >= big + 200 * MiB));
  CHECK(heap.allocate(190 * MiB, 0).address == big);
}

TEST_CASE("under a split limit neighbours join below it, so that memory is found again") {
  SimulatedDevice device;
  VirtualHeap heap(device, limited_to(64 * MiB));
  Bytes after_warm_up = 0;
  for (int round = 0; round < 50; ++round) {
    Address blocks[40];
    for (int i = 0; i < 40; ++i)
      blocks[i] = heap.allocate((2 + (i * 7 + round) % 30) * MiB, 0).address;
    for (const Address block : blocks) heap.free(block, 0);
    std::string why;
    REQUIRE(heap.check(&why));
    if (round == 10) after_warm_up = heap.counters().reserved;
  }
  CHECK(heap.counters().reserved <= after_warm_up + after_warm_up / 2);
}
