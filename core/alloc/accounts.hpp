// The arithmetic of Counters: every change of what is live or held goes through here.
#pragma once

#include <algorithm>

#include "core/device/device.hpp"
#include "core/record/metrics.hpp"

namespace fragshim::accounts {

inline void allocated(Counters& c, Bytes requested, Bytes size) {
  c.requested += requested;
  c.allocated += size;
  c.requested_peak = std::max(c.requested_peak, c.requested);
  c.allocated_peak = std::max(c.allocated_peak, c.allocated);
  ++c.allocations;
  ++c.live_blocks;
}

inline void freed(Counters& c, Bytes requested, Bytes size) {
  c.requested -= requested;
  c.allocated -= size;
  ++c.frees;
  --c.live_blocks;
}

/// What a device cannot do at all is no lack of memory: the request goes elsewhere.
inline void refused(Counters& c, Status why) {
  if (why.outcome != Outcome::unsupported) ++c.ooms;
}

inline void reserved(Counters& c, Bytes size) {
  c.reserved += size;
  c.reserved_peak = std::max(c.reserved_peak, c.reserved);
  ++c.device_alloc;
}

inline void returned(Counters& c, Bytes size) {
  c.reserved -= size;
  ++c.device_free;
}

inline void reset_peaks(Counters& c, bool allocated, bool reserved) {
  if (allocated) {
    c.requested_peak = c.requested;
    c.allocated_peak = c.allocated;
  }
  if (reserved) c.reserved_peak = c.reserved;
}

}  // namespace fragshim::accounts
