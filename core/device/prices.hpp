// What driver calls cost: microseconds of host time on an idle H200 (driver 580, CUDA 13.0),
// medians. The simulated device's clock and the replay's device_time_us add these up.
#pragma once

#include <cstddef>

#include "core/types.hpp"

namespace fragshim::prices {

/// A measured price: what a call on `size` bytes took.
struct Point {
  Bytes size;
  double us;
};

/// The price at `size` by straight lines between the measured points: flat before the first, and
/// beyond the last as steep as between the last two.
template <std::size_t count>
constexpr double at(const Point (&points)[count], Bytes size) {
  static_assert(count >= 2);
  if (size <= points[0].size) return points[0].us;
  std::size_t right = 1;
  while (right + 1 < count && size > points[right].size) ++right;
  const Point& a = points[right - 1];
  const Point& b = points[right];
  const double share = static_cast<double>(size - a.size) / static_cast<double>(b.size - a.size);
  return a.us + share * (b.us - a.us);
}

// cudaMalloc and cudaFree by the size of the segment.
inline constexpr Point malloc_us[] = {{512, 30}, {20 * MiB, 45}, {GiB, 127}, {8 * GiB, 573}};
inline constexpr Point free_us[] = {{512, 27}, {20 * MiB, 37}, {GiB, 435}, {8 * GiB, 3586}};

/// The price of one handle, from the time a GiB of such handles takes.
constexpr Point per_handle(Bytes handle, double us_per_gib) {
  return {handle, us_per_gib * static_cast<double>(handle) / static_cast<double>(GiB)};
}

// Virtual memory by the size of the physical handle.
inline constexpr Point create_us[] = {per_handle(2 * MiB, 7539),  per_handle(8 * MiB, 1839),
                                      per_handle(32 * MiB, 501),  per_handle(64 * MiB, 284),
                                      per_handle(128 * MiB, 155), per_handle(512 * MiB, 67)};
inline constexpr Point map_us[] = {per_handle(2 * MiB, 864),  per_handle(8 * MiB, 139),
                                   per_handle(32 * MiB, 64),  per_handle(64 * MiB, 20),
                                   per_handle(128 * MiB, 11), per_handle(512 * MiB, 5)};
inline constexpr Point set_access_us[] = {per_handle(2 * MiB, 21687), per_handle(8 * MiB, 4635),
                                          per_handle(32 * MiB, 1242), per_handle(64 * MiB, 648),
                                          per_handle(128 * MiB, 352), per_handle(512 * MiB, 141)};
inline constexpr Point unmap_us[] = {per_handle(2 * MiB, 13095), per_handle(8 * MiB, 3330),
                                     per_handle(32 * MiB, 800),  per_handle(64 * MiB, 360),
                                     per_handle(128 * MiB, 203), per_handle(512 * MiB, 68)};
inline constexpr Point release_us[] = {per_handle(2 * MiB, 8533),  per_handle(8 * MiB, 2810),
                                       per_handle(32 * MiB, 1096), per_handle(64 * MiB, 953),
                                       per_handle(128 * MiB, 788), per_handle(512 * MiB, 680)};

// Calls whose price does not depend on a size. Giving addresses back was not measured; it is taken
// to cost what reserving them does.
inline constexpr double reserve_us = 17;
inline constexpr double unreserve_us = 17;
inline constexpr double record_us = 0.36;
inline constexpr double record_legacy_us = 0.59;  // an event on the legacy default stream
inline constexpr double record_context_us = 0.28;
inline constexpr double query_us = 0.32;
inline constexpr double stream_wait_us = 0.11;
inline constexpr double stream_wait_context_us = 0.22;  // on an event of the whole context
inline constexpr double memory_info_us = 6.5;

}  // namespace fragshim::prices
