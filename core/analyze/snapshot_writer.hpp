// Writes a trace as a PyTorch memory snapshot, for memory_viz and for pickle.load.
#pragma once

#include <ostream>

#include "core/analyze/event_source.hpp"

namespace fragshim {

/// Segments and addresses are those that PyTorch's allocator would have had by default; requests,
/// times, streams and lines of code are the recording's. Returns the events read.
std::uint64_t write_snapshot(EventSource& source, std::ostream& out);

}  // namespace fragshim
