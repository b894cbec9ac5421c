// A VirtualHeap on a simulated device, whose every step is checked.
#pragma once

#include <string>

#include "core/alloc/virtual_heap.hpp"
#include "core/device/simulated.hpp"
#include "tests/catch.hpp"
#include "tests/stubborn_device.hpp"

namespace fragshim {

struct Virtual {
  SimulatedDevice device;
  StubbornDevice front;
  VirtualHeap heap;
  explicit Virtual(Bytes capacity = unlimited, const AllocationConfig& config = {},
                   const VirtualOptions& heap_options = {})
      : device(options(capacity)), front(device), heap(front, config, heap_options) {}

  static SimulatedOptions options(Bytes capacity) {
    SimulatedOptions options;
    options.capacity = capacity;
    return options;
  }
  Address take(Bytes size, StreamId stream = 1) {
    const Grant grant = heap.allocate(size, stream);
    REQUIRE(grant.address != 0);
    return grant.address;
  }
  void free(Address address, StreamId stream = 1) { REQUIRE(heap.free(address, stream).ok()); }
  Bytes reserved() const { return heap.counters().reserved; }
  void check() {
    std::string why;
    REQUIRE(heap.check(&why));
    REQUIRE(device.hazards() == 0);
    REQUIRE(device.used() == reserved());
  }
};

}  // namespace fragshim
