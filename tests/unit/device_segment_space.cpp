// The driver's addresses, by rules seen on the real one.
#include "core/device/segment_space.hpp"

#include <map>
#include <random>

#include "tests/catch.hpp"

using namespace fragshim;

namespace {

constexpr Address start = Address{1} << 44;
constexpr Bytes size = Bytes{1} << 40;

/// Fills what the context leaves free in regions of its own.
void fill_context(SegmentSpace& space) {
  space.take(2 * MiB);
  space.take(24 * MiB);
}

}  // namespace

TEST_CASE("segments go to regions from the top down, within a region from its low end up") {
  SegmentSpace space(start, size);
  fill_context(space);
  const Address first = *space.take(20 * MiB);
  CHECK(first % (32 * MiB) == 0);
  CHECK(*space.take(2 * MiB) == first + 20 * MiB);  // there is room left
  const Address second = *space.take(20 * MiB);
  CHECK(second == first - 32 * MiB);
  CHECK(*space.take(2 * MiB) == second + 20 * MiB);  // the newest region comes first
  CHECK(*space.take(100 * MiB) == second - 128 * MiB);
}

TEST_CASE("within a region the shortest free piece that fits is taken") {
  SegmentSpace space(start, size);
  fill_context(space);
  const Address first = *space.take(20 * MiB);
  const Address next = *space.take(2 * MiB);  // 10 MiB left behind it
  space.give(first, 20 * MiB);                // a piece of 20 MiB in front of it
  CHECK(*space.take(2 * MiB) == next + 2 * MiB);
  CHECK(*space.take(20 * MiB) == first);
}

TEST_CASE("a region goes back when it is empty; a gap just as large does not serve again") {
  SegmentSpace space(start, size);
  fill_context(space);
  const Address first = *space.take(32 * MiB);
  const Address second = *space.take(32 * MiB);
  const Address third = *space.take(32 * MiB);
  space.give(second, 32 * MiB);
  CHECK(*space.take(32 * MiB) == third - 32 * MiB);
  space.give(first, 32 * MiB);  // a gap of 64 MiB
  CHECK(*space.take(32 * MiB) == first);
}

TEST_CASE("segments never overlap, and all addresses come home") {
  SegmentSpace space(start, size);
  std::mt19937_64 random(3);
  std::map<Address, Bytes> live;
  for (int i = 0; i < 20'000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      const auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      space.give(victim->first, victim->second);
      live.erase(victim);
      continue;
    }
    const Bytes length = 2 * MiB * (1 + random() % 40);
    const Address address = *space.take(length);
    const auto next = live.lower_bound(address);
    REQUIRE((next == live.end() || address + length <= next->first));
    REQUIRE((next == live.begin() || std::prev(next)->first + std::prev(next)->second <= address));
    live.emplace(address, length);
  }
  for (const auto& [address, length] : live) space.give(address, length);
  // All that the context does not keep is in one piece again.
  CHECK(space.take(size - 96 * MiB).has_value());
}
