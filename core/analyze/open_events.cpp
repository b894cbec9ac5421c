#include <utility>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/csv_reader.hpp"
#include "core/analyze/event_source.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/snapshot_events.hpp"
#include "core/analyze/trace_reader.hpp"

namespace fragshim {

namespace {

/// Python's pickle, protocol 2 and later, starts with these: PROTO and its number.
bool is_pickle(std::string_view head) {
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

bool is_text(std::string_view head) {
  for (const char c : head) {
    if (c == '\0') return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<EventSource> open_events(const std::string& path, const SourceOptions& options) {
  return open_events(ByteStream::open(path), options);
}

std::unique_ptr<EventSource> open_events(ByteStream input, const SourceOptions& options) {
  const std::string_view head = input.peek(sizeof(TraceHeader)).substr(0, sizeof(TraceHeader));
  if (is_trace(head)) return std::make_unique<TraceReader>(std::move(input));
  if (is_pickle(head)) return std::make_unique<SnapshotEvents>(std::move(input), options.device);
  if (!is_text(head)) {
    throw InputError(
        input.name() +
        ": neither a CSV log, a PyTorch memory snapshot nor a binary trace of fragshim");
  }
  return std::make_unique<CsvReader>(std::move(input));
}

}  // namespace fragshim
