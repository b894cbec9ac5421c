// What is a leak, and what is not.
#include "core/analyze/low_water.hpp"

#include <functional>

#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::is_near;

namespace {

LowWater of(int samples, const std::function<Bytes(int)>& held) {
  LowWater low;
  for (int i = 0; i < samples; ++i) low.add(i, held(i));
  return low;
}

/// Iterations of ten samples: up to 8 GiB and down again.
Bytes iteration(int i) { return GiB + static_cast<Bytes>(i % 10) * 800 * MiB; }

}  // namespace

TEST_CASE("a low-water mark that keeps rising is a leak, with its slope") {
  const auto low = of(2000, [](int i) { return iteration(i) + static_cast<Bytes>(i) * MiB; });
  const auto growth = low.growth();
  REQUIRE(growth.has_value());
  CHECK(is_near(growth->bytes_per_second(), 1.0 * MiB, 0.01));
  CHECK(growth->to > growth->from);
  CHECK(growth->bytes_per_iteration() == 10 * MiB);
}

TEST_CASE("a rise and fall from iteration to iteration is none") {
  CHECK_FALSE(of(2000, iteration).growth().has_value());
}

TEST_CASE("iterations are large falls and rises, however small ones go on within") {
  Swings swings;
  for (int i = 0; i < 1000; ++i) {
    swings.add(30 * GiB + iteration(i) + (i % 2 == 0 ? 500 * MiB : 0));
  }
  CHECK(swings.count() >= 99);
  CHECK(swings.count() <= 101);
  Swings rising;
  for (int i = 0; i < 1000; ++i) rising.add(static_cast<Bytes>(i));
  CHECK(rising.count() == 0);
}

TEST_CASE("growth at the start alone is none") {
  const auto low =
      of(2000, [](int i) { return iteration(i) + static_cast<Bytes>(std::min(i, 450)) * MiB; });
  CHECK_FALSE(low.growth().has_value());
}

TEST_CASE("one fall back clears the suspicion") {
  const auto low = of(2000, [](int i) {
    return i == 1500 ? Bytes{0} : iteration(i) + static_cast<Bytes>(i) * MiB;
  });
  CHECK_FALSE(low.growth().has_value());
}

TEST_CASE("a little growth, or few samples, say nothing") {
  CHECK_FALSE(of(2000, [](int i) { return 8 * GiB + static_cast<Bytes>(i) * KiB; }).growth());
  CHECK_FALSE(of(16, [](int i) { return static_cast<Bytes>(i) * GiB; }).growth());
  CHECK_FALSE(LowWater().growth());
}

TEST_CASE("a million samples take no more room and say the same") {
  const auto low = of(1'000'000, [](int i) { return iteration(i) + static_cast<Bytes>(i) * KiB; });
  const auto growth = low.growth();
  REQUIRE(growth.has_value());
  CHECK(is_near(growth->bytes_per_second(), 1024, 0.01));
}
