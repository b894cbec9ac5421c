#include "core/analyze/convert.hpp"
#include "core/record/trace_format.hpp"

namespace fragshim {

namespace {

template <typename Pod>
void write_pod(std::ostream& out, const Pod& pod) {
  out.write(reinterpret_cast<const char*>(&pod), sizeof pod);
}

}  // namespace

std::uint64_t write_binary(EventSource& source, std::ostream& out) {
  std::uint64_t events = 0;
  TraceHeader header;
  if (source.has_stream_ordered()) header.doors = stream_ordered_bit;
  Event event;
  for (; source.next(&event); ++events) {
    if (events == 0) {
      // Readers add the real time to what counts from the start: the same point serves for both.
      header.start_ns = event.time_ns;
      header.realtime_ns = event.time_ns;
      write_pod(out, header);
    }
    write_pod(out, pack_record(event, header.start_ns));
  }
  if (events == 0) write_pod(out, header);
  return events;
}

}  // namespace fragshim
