// Writes a trace as counters over time, for Perfetto and chrome://tracing.
#pragma once

#include <ostream>

#include "core/analyze/event_source.hpp"

namespace fragshim {

/// Chrome's trace events: a counter each for what is requested, allocated and reserved, as
/// PyTorch's allocator would have had them by default, and marks where the cache was emptied or a
/// request failed. Returns the events read.
std::uint64_t write_perfetto(EventSource& source, std::ostream& out);

}  // namespace fragshim
