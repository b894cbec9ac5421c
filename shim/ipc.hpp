// Memory whose handle leaves the process, or that the driver is to treat specially: both concern
// whole segments, and blocks share segments.
#pragma once

#include <cuda.h>

namespace fragshim::ipc {

enum class Export {
  whole,     // the driver may make the handle: it stands for this pointer and no other
  foreign,   // not our memory
  interior,  // the handle would stand for the segment's start: wrong bytes, without an error
  unmapped,  // virtual memory, for which there are no such handles
};

/// What exporting `address` would do. A whole segment is pinned: neither split nor reused again.
Export prepare(CUdeviceptr address) noexcept;

/// Pins the segment in which `address` lies, if it is one of ours.
void pin_around(CUdeviceptr address) noexcept;

}  // namespace fragshim::ipc
