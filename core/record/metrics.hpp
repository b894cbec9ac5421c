// What is measured, and what it is called: the log, the reports and the replay use these names.
// All sizes in bytes.
#pragma once

#include <array>

#include "core/types.hpp"

namespace fragshim {

/// Running totals of a heap: kept up to date by every operation, so reading them is cheap.
struct Counters {
  Bytes requested = 0;  // asked for by the program, alive
  Bytes allocated = 0;  // the same after rounding (a block that could not be split counts whole)
  Bytes reserved = 0;   // held from the device: physical memory, not address space
  Bytes requested_peak = 0;
  Bytes allocated_peak = 0;
  Bytes reserved_peak = 0;
  std::uint64_t allocations = 0;  // requests served, ever
  std::uint64_t frees = 0;
  std::uint64_t device_alloc = 0;  // memory calls to the device that took memory
  std::uint64_t device_free = 0;   // ... that gave it back
  std::uint64_t splits = 0;
  std::uint64_t merges = 0;
  std::uint64_t stitches = 0;
  std::uint64_t retries = 0;  // allocations that needed the cache released first
  std::uint64_t trims = 0;
  std::uint64_t ooms = 0;
  std::uint64_t waits = 0;  // times the host waited for the device
  std::uint64_t live_blocks = 0;

  Bytes cached() const { return reserved - allocated; }
};

/// Free blocks counted by size: bucket i holds sizes in [2^i, 2^(i+1)).
using SizeHistogram = std::array<std::uint32_t, 48>;

/// Counters plus what only a walk can tell.
struct Usage : Counters {
  Bytes largest_free = 0;    // the largest contiguous block that could be handed out, in one stream
  Bytes releasable = 0;      // cached, in segments or chunks that hold no live block
  Bytes pinned = 0;          // cached - releasable
  Bytes pending = 0;         // free, but waiting for a fence
  Bytes inactive_split = 0;  // free bytes of split plain segments (PyTorch's inactive_split_bytes)
  std::uint64_t segments = 0;
  std::uint64_t free_blocks = 0;
  std::uint64_t streams = 0;
  SizeHistogram free_histogram{};

  /// (allocated - requested) / allocated.
  double internal_fragmentation() const {
    return allocated == 0
               ? 0
               : static_cast<double>(allocated - requested) / static_cast<double>(allocated);
  }
  /// 1 - largest_free / cached; 0 when nothing is cached.
  double external_fragmentation() const {
    return cached() == 0 ? 0
                         : 1 - static_cast<double>(largest_free) / static_cast<double>(cached());
  }
  /// allocated / reserved; 1 when nothing is reserved.
  double utilisation() const {
    return reserved == 0 ? 1 : static_cast<double>(allocated) / static_cast<double>(reserved);
  }
};

}  // namespace fragshim
