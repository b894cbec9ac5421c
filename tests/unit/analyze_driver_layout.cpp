// The driver's addresses, by rules seen on the real one.
#include "core/analyze/driver_layout.hpp"

#include <map>
#include <random>

#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

/// A layout whose context's own areas are full.
DriverLayout fresh() {
  DriverLayout layout;
  layout.place(2 * MiB);
  layout.place(24 * MiB);
  return layout;
}

}  // namespace

TEST_CASE("segments go to areas from the top down, within an area from its low end up") {
  DriverLayout layout = fresh();
  const Address first = *layout.place(20 * MiB);
  CHECK(first % (32 * MiB) == 0);
  CHECK(*layout.place(2 * MiB) == first + 20 * MiB);  // there is room left
  const Address second = *layout.place(20 * MiB);
  CHECK(second == first - 32 * MiB);
  CHECK(*layout.place(2 * MiB) == second + 20 * MiB);  // the newest area comes first
  CHECK(*layout.place(100 * MiB) == second - 128 * MiB);
}

TEST_CASE("within an area the smallest hole that fits is taken") {
  DriverLayout layout = fresh();
  const Address first = *layout.place(20 * MiB);
  const Address next = *layout.place(2 * MiB);  // 10 MiB left behind it
  layout.remove(first);                         // a hole of 20 MiB in front of it
  CHECK(*layout.place(2 * MiB) == next + 2 * MiB);
  CHECK(*layout.place(20 * MiB) == first);
}

TEST_CASE("an area goes back when it is empty; a gap just as large does not serve again") {
  DriverLayout layout = fresh();
  const Address first = *layout.place(32 * MiB);
  const Address second = *layout.place(32 * MiB);
  const Address third = *layout.place(32 * MiB);
  layout.remove(second);
  CHECK(*layout.place(32 * MiB) == third - 32 * MiB);
  layout.remove(first);  // a gap of 64 MiB
  CHECK(*layout.place(32 * MiB) == first);
}

TEST_CASE("a fresh context has room for some segments in areas of its own") {
  DriverLayout layout;
  const Address small = *layout.place(2 * MiB);
  const Address large = *layout.place(20 * MiB);
  CHECK(large - small == 0x7f0ef4800000 - 0x7f0eefe00000);
  const Address area = *layout.place(64 * MiB);
  CHECK(large - area == 0x7f0ef4800000 - 0x7f0ed2000000);
}

TEST_CASE("segments of a device with the driver's layout never overlap, and all come home") {
  SimulatedDevice inner;
  DriverLayoutDevice device(inner);
  std::mt19937_64 random(3);
  std::map<Address, Bytes> live;
  for (int i = 0; i < 20'000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      const auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      REQUIRE(device.release_segment(victim->first, victim->second).ok());
      live.erase(victim);
      continue;
    }
    const Bytes size = 2 * MiB * (1 + random() % 40);
    Address address = 0;
    REQUIRE(device.allocate_segment(size, &address).ok());
    const auto next = live.lower_bound(address);
    REQUIRE((next == live.end() || address + size <= next->first));
    REQUIRE((next == live.begin() || std::prev(next)->first + std::prev(next)->second <= address));
    live.emplace(address, size);
  }
  for (const auto& [address, size] : live) REQUIRE(device.release_segment(address, size).ok());
  CHECK(inner.used() == 0);
  CHECK(device.release_segment(0x1234, 2 * MiB).outcome == Outcome::not_owned);
}
