// PyTorch's rules about sizes, figure by figure.
#include "core/alloc/policy.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

AllocationConfig divided(std::uint32_t divisions) {
  AllocationConfig config;
  config.roundup_power2_divisions.fill(divisions);
  return config;
}

}  // namespace

TEST_CASE("sizes are rounded to 512 bytes") {
  for (const std::uint32_t divisions : {0u, 1u}) {
    const AllocationConfig config = divided(divisions);
    CHECK(policy::round_size(config, 0) == 512);
    CHECK(policy::round_size(config, 1) == 512);
    CHECK(policy::round_size(config, 512) == 512);
    CHECK(policy::round_size(config, 513) == 1024);
    CHECK(policy::round_size(config, 1200) == 1536);
    CHECK(policy::round_size(config, GiB + 1) == GiB + 512);
  }
}

TEST_CASE("sizes are rounded to a part of their power of two") {
  const AllocationConfig config = divided(4);
  // Up to 512 times the divisions a size is only rounded to 512, whatever the source's comment
  // says.
  CHECK(policy::round_size(config, 1200) == 1536);
  CHECK(policy::round_size(config, 2048) == 2048);
  CHECK(policy::round_size(config, 2049) == 2560);
  CHECK(policy::round_size(config, 4096) == 4096);
  CHECK(policy::round_size(config, 4097) == 5120);
  CHECK(policy::round_size(config, 5 * MiB) == 5 * MiB);
  CHECK(policy::round_size(config, 5 * MiB + 1) == 6 * MiB);
  CHECK(policy::round_size(config, 7 * MiB + 1) == 8 * MiB);
  CHECK(policy::round_size(divided(8), 1000 * MiB) == 1024 * MiB);
  CHECK(policy::round_size(divided(8), 513 * MiB) == 576 * MiB);
}

TEST_CASE("divisions hold for a power of two each, the ends for all beyond") {
  AllocationConfig config;
  config.roundup_power2_divisions[0] = 2;   // up to 2 MiB
  config.roundup_power2_divisions[8] = 4;   // 256 to 512 MiB
  config.roundup_power2_divisions[15] = 1;  // from 32 GiB
  CHECK(policy::round_size(config, 600 * KiB) == 768 * KiB);
  CHECK(policy::round_size(config, 2 * MiB - 511) == 2 * MiB);
  CHECK(policy::round_size(config, 2 * MiB + 1) == 2 * MiB + 512);
  CHECK(policy::round_size(config, 256 * MiB - 1) == 256 * MiB);
  CHECK(policy::round_size(config, 257 * MiB) == 320 * MiB);
  CHECK(policy::round_size(config, 512 * MiB + 1) == 512 * MiB + 512);
  CHECK(policy::round_size(config, 100 * GiB + 1) == 100 * GiB + 512);
}

TEST_CASE("segments by the size of the request") {
  AllocationConfig config;
  CHECK(policy::segment_size(config, 512) == 2 * MiB);
  CHECK(policy::segment_size(config, MiB) == 2 * MiB);
  CHECK(policy::segment_size(config, MiB + 512) == 20 * MiB);
  CHECK(policy::segment_size(config, 10 * MiB - 512) == 20 * MiB);
  CHECK(policy::segment_size(config, 10 * MiB) == 10 * MiB);
  CHECK(policy::segment_size(config, 10 * MiB + 512) == 12 * MiB);
  CHECK(policy::segment_size(config, 200 * MiB) == 200 * MiB);
  config.large_segment_size = 64 * MiB;
  CHECK(policy::segment_size(config, MiB + 512) == 64 * MiB);
  CHECK(policy::segment_size(config, 10 * MiB) == 10 * MiB);
  CHECK(policy::is_small(MiB));
  CHECK_FALSE(policy::is_small(MiB + 512));
}

TEST_CASE("which block may serve") {
  AllocationConfig config;
  CHECK(policy::may_serve(config, 100 * GiB, 512));
  config.max_split_size = 128 * MiB;
  // Below the limit only blocks below the limit serve.
  CHECK(policy::may_serve(config, 128 * MiB - 512, 100 * MiB));
  CHECK_FALSE(policy::may_serve(config, 128 * MiB, 100 * MiB));
  // Above it, blocks that waste less than the slack: of 200 MiB, a request of 181 but not of 180.
  CHECK(policy::may_serve(config, 200 * MiB, 181 * MiB));
  CHECK_FALSE(policy::may_serve(config, 200 * MiB, 180 * MiB));
  config.max_non_split_rounding = 40 * MiB;
  CHECK(policy::may_serve(config, 200 * MiB, 180 * MiB));
  CHECK_FALSE(policy::may_serve(config, 200 * MiB, 160 * MiB));
}

TEST_CASE("which block is split") {
  AllocationConfig config;
  constexpr bool small = true;
  constexpr bool large = false;
  CHECK(policy::should_split(config, small, 512, 512));
  CHECK_FALSE(policy::should_split(config, small, 512, 0));
  CHECK_FALSE(policy::should_split(config, large, 10 * MiB, MiB));
  CHECK(policy::should_split(config, large, 10 * MiB, MiB + 512));
  config.max_split_size = 128 * MiB;
  CHECK(policy::should_split(config, large, 128 * MiB - 512, 2 * MiB));
  CHECK_FALSE(policy::should_split(config, large, 128 * MiB, 2 * MiB));
  config.expandable_segments = true;
  CHECK(policy::should_split(config, large, 10 * MiB, 512));
  CHECK(policy::should_split(config, large, 200 * MiB, 512));
}
