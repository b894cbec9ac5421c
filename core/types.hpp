// The few types every part of the core speaks in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fragshim {

/// A size in bytes; never a count of pages or blocks.
using Bytes = std::uint64_t;

/// An address in device memory. Zero is no address.
using Address = std::uint64_t;

/// A stream as the device knows it (a CUstream's bits). What zero means is the device's business.
using StreamId = std::uint64_t;

inline constexpr Bytes KiB = 1024;
inline constexpr Bytes MiB = 1024 * KiB;
inline constexpr Bytes GiB = 1024 * MiB;
inline constexpr Bytes unlimited = ~Bytes{0};

/// `value` rounded up to a multiple of `step` (any positive step); saturates instead of wrapping.
constexpr Bytes round_up(Bytes value, Bytes step) {
  const Bytes rest = value % step;
  if (rest == 0) return value;
  return value > unlimited - (step - rest) ? unlimited - unlimited % step : value + (step - rest);
}

/// `value` rounded down to a multiple of `step`.
constexpr Bytes round_down(Bytes value, Bytes step) { return value - value % step; }

}  // namespace fragshim
