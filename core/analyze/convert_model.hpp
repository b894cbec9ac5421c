// What PyTorch's allocator, as it is by default, would have done at each event of a trace: for
// formats that show more than a trace holds.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/analyze/event_source.hpp"
#include "core/analyze/replay_heap.hpp"

namespace fragshim {

/// A segment as the allocator holds it.
struct ModelSegment {
  Bytes size = 0;
  StreamId stream = 0;
  std::vector<BlockView> blocks;
};
using ModelSegments = std::map<Address, ModelSegment>;

/// All segments of a heap, with their blocks.
ModelSegments segments_of(const Heap& heap);

/// Called for each step of each event, after it was carried out: `address` is where the model's
/// block came or went; 0: nowhere.
using ModelVisitor =
    std::function<void(const Event& event, const ReplayStep& step, Address address)>;

/// Sends what is wanted of a trace through `heap`. Returns what the trace held.
TraceCounts run_model(EventSource& source, Doors doors, ReplayHeap* heap,
                      const ModelVisitor& visit);

}  // namespace fragshim
