// One line of an allocation trace, whatever file it came from or goes to.
#pragma once

#include "core/types.hpp"

namespace fragshim {

enum class Action : std::uint8_t {
  none = 0,  // never written: marks the end of a trace file's used part
  allocate = 1,
  free = 2,
  allocate_failure = 3,  // a request that failed when the trace was recorded
  trim = 4,              // the cache was emptied (torch.cuda.empty_cache)
};

/// The call that a request came through. Each door has a heap of its own.
enum class EventDoor : std::uint8_t {
  unknown = 0,
  synchronous = 1,     // cudaMalloc and its like
  stream_ordered = 2,  // cudaMallocAsync and its like
};

struct Event {
  std::int64_t time_ns = 0;  // since some fixed point; differences count
  Address address = 0;
  Bytes size = 0;  // what the program asked for; 0 for free and trim if unknown
  StreamId stream = 0;
  std::uint32_t thread = 0;
  Action action = Action::none;
  EventDoor door = EventDoor::unknown;  // of a free: the call that freed, whosever the block
};

}  // namespace fragshim
