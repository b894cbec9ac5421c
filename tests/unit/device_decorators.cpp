// Devices around another: the limit that several share, and the meter.
#include <thread>
#include <vector>

#include "core/device/limited.hpp"
#include "core/device/metered.hpp"
#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

TEST_CASE("a budget is shared by all devices that draw on it") {
  SimulatedDevice device;
  Budget budget(100 * MiB);
  LimitedDevice one(device, budget);
  LimitedDevice two(device, budget);
  Address address = 0;
  Physical memory;

  REQUIRE(one.allocate_segment(60 * MiB, &address).ok());
  CHECK(two.create(42 * MiB, &memory).outcome == Outcome::over_limit);
  REQUIRE(two.create(40 * MiB, &memory).ok());
  CHECK(budget.held() == 100 * MiB);
  CHECK(two.allocate_segment(1, &address).outcome == Outcome::over_limit);
  CHECK(device.calls(Call::create) == 1);  // the device is not asked for what is over the limit
  REQUIRE(two.destroy(memory, 40 * MiB).ok());
  CHECK(budget.held() == 60 * MiB);
  CHECK(two.allocate_segment(unlimited, &address).outcome == Outcome::over_limit);
}

TEST_CASE("what the device refuses is not charged, what it will not take back stays charged") {
  SimulatedDevice device;
  Budget budget(100 * MiB);
  LimitedDevice limited(device, budget);
  Address address = 0;

  device.fail_next(Call::allocate_segment, 1, {Outcome::out_of_memory});
  CHECK(limited.allocate_segment(10 * MiB, &address).outcome == Outcome::out_of_memory);
  CHECK(budget.held() == 0);
  REQUIRE(limited.allocate_segment(10 * MiB, &address).ok());
  device.fail_next(Call::release_segment, 1, {Outcome::failed, 700});
  CHECK(limited.release_segment(address, 10 * MiB).code == 700);
  CHECK(budget.held() == 10 * MiB);
  REQUIRE(limited.release_segment(address, 10 * MiB).ok());
  CHECK(budget.held() == 0);
}

TEST_CASE("an abandoned device credits all it was charged, and nothing twice") {
  SimulatedDevice device;
  Budget budget(100 * MiB);
  LimitedDevice gone(device, budget);
  LimitedDevice other(device, budget);
  Address lost = 0;
  Address kept = 0;
  REQUIRE(gone.allocate_segment(30 * MiB, &lost).ok());
  REQUIRE(other.allocate_segment(20 * MiB, &kept).ok());
  gone.abandon();
  CHECK(budget.held() == 20 * MiB);
  REQUIRE(gone.release_segment(lost, 30 * MiB).ok());
  CHECK(budget.held() == 20 * MiB);
}

TEST_CASE("threads never take more than the budget has") {
  constexpr Bytes limit = 64 * MiB;
  Budget budget(limit);
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20'000; ++round) {
        if (!budget.take(20 * MiB)) continue;
        if (budget.held() > limit) exceeded = true;
        budget.give(20 * MiB);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(exceeded);
  CHECK(budget.held() == 0);
}

TEST_CASE("a meter counts what succeeds and times what is tried") {
  SimulatedDevice device;
  MeteredDevice metered(device);
  Address address = 0;
  Address range = 0;
  Physical memory;
  REQUIRE(metered.allocate_segment(2 * MiB, &address).ok());
  REQUIRE(metered.create(2 * MiB, &memory).ok());
  REQUIRE(metered.reserve(2 * MiB, &range).ok());
  REQUIRE(metered.map(range, 2 * MiB, memory).ok());
  CHECK(metered.meter().device_alloc == 2);
  CHECK(metered.meter().device_free == 0);
  device.fail_next(Call::create, 1, {Outcome::out_of_memory});
  CHECK(metered.create(2 * MiB, &memory).no_memory());
  CHECK(metered.meter().device_alloc == 2);
  REQUIRE(metered.unmap(range, 2 * MiB).ok());
  REQUIRE(metered.destroy(memory, 2 * MiB).ok());
  REQUIRE(metered.release_segment(address, 2 * MiB).ok());
  CHECK(metered.device_free() == 2);
  CHECK(metered.meter().device_time_ns > 0);
  Fence fence;
  const auto before = metered.meter().device_time_ns;
  REQUIRE(metered.record(0, &fence).ok());
  CHECK(metered.meter().device_time_ns == before);  // order is not memory
  metered.retire(fence);
}
