// How large the chunks are that stitching works with.
#pragma once

#include "core/types.hpp"

namespace fragshim {

/// Mapping costs by the chunk, hardly by the byte, and most while the device is busy; but only
/// whole free chunks can be gathered. So a chunk for large blocks is this part of the most that was
/// ever held (the peak, since a program that empties the cache will soon fill it again), within
/// limits in bytes.
struct ChunkSizes {
  Bytes share = 320;
  Bytes least = 12 * MiB;
  Bytes most = 256 * MiB;
};

}  // namespace fragshim
