#include <cmath>

#include "core/device/prices.hpp"
#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

bool close(double a, double b) { return std::abs(a - b) < 1e-6 * std::abs(b); }

}  // namespace

TEST_CASE("prices go in straight lines between the measured points") {
  CHECK(prices::at(prices::malloc_us, 1) == 30);
  CHECK(prices::at(prices::malloc_us, 512) == 30);
  CHECK(prices::at(prices::malloc_us, 20 * MiB) == 45);
  CHECK(prices::at(prices::malloc_us, GiB) == 127);
  CHECK(prices::at(prices::malloc_us, 8 * GiB) == 573);
  CHECK(close(prices::at(prices::malloc_us, 4 * GiB + GiB / 2), 350));
  CHECK(close(prices::at(prices::malloc_us, 15 * GiB), 1019));
  CHECK(close(prices::at(prices::set_access_us, 2 * MiB), 21687.0 / 512));
  CHECK(close(prices::at(prices::release_us, 512 * MiB), 340));
}

TEST_CASE("the clock adds up what the calls cost, and the calls are counted") {
  SimulatedDevice device;
  Address segment = 0;
  REQUIRE(device.allocate_segment(GiB, &segment).ok());
  CHECK(close(device.time_us(), 127));
  REQUIRE(device.release_segment(segment, GiB).ok());
  CHECK(close(device.time_us(), 127 + 435));
  Fence fence;
  REQUIRE(device.record(7, &fence).ok());
  REQUIRE(device.query(fence).ok());
  CHECK(close(device.time_us(), 127 + 435 + 0.36 + 0.32));
  CHECK(device.calls(Call::allocate_segment) == 1);
  CHECK(device.calls(Call::any) == 4);
}

TEST_CASE("small handles cost more a byte than big ones") {
  double before = 0;
  for (const Bytes handle : {512 * MiB, 64 * MiB, 2 * MiB}) {
    SimulatedDevice device;
    Address range = 0;
    REQUIRE(device.reserve(GiB, &range).ok());
    for (Bytes offset = 0; offset < GiB; offset += handle) {
      Physical memory;
      REQUIRE(device.create(handle, &memory).ok());
      REQUIRE(device.map(range + offset, handle, memory).ok());
    }
    CHECK(device.time_us() > 3 * before);
    before = device.time_us();
  }
}
