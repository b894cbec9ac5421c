// The settings that decide sizes and splits: the value every policy is a function of.
#pragma once

#include <array>
#include <cstdint>

namespace fragshim {

enum class PolicyKind : std::uint8_t {
  automatic,  // native for segments, stitch for stream-ordered memory
  native,     // PyTorch's caching allocator, exactly
  stitch,     // virtual memory, put together from wherever it is free
};

/// PyTorch's allocator options by PyTorch's defaults; sizes in bytes. `no_limit` stands for
/// "unlimited" as SIZE_MAX does in PyTorch.
struct AllocationConfig {
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  static constexpr std::uint64_t default_large_segment = 20ull << 20;

  std::uint64_t max_split_size = no_limit;
  std::uint64_t max_non_split_rounding = default_large_segment;
  std::uint64_t large_segment_size = default_large_segment;
  double garbage_collection_threshold = 0;  // 0: off; else in (0, 1)
  double per_process_memory_fraction = 1;   // in [0, 1]; 1: no limit
  std::uint64_t memory_limit = no_limit;    // fragshim's own memory_limit_mb
  bool expandable_segments = false;
  PolicyKind policy = PolicyKind::automatic;
  /// Divisions for sizes in [2^(20+i), 2^(21+i)); 0 or 1: plain 512-byte rounding.
  std::array<std::uint32_t, 16> roundup_power2_divisions{};
};

}  // namespace fragshim
