// Any bytes as a pickle: plain data is read within its bounds, everything else is refused in one
// line; as a snapshot each device's events come to an end.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/pickle_data.hpp"
#include "core/analyze/snapshot_events.hpp"

using namespace fragshim;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Walks values to a depth and number that crafted references cannot exceed.
void walk(const PickleData& data, PickleData::Id id, int depth, int* budget) {
  if (depth == 0 || --*budget < 0) return;
  data.integer(id);
  data.number(id);
  if (const auto text = data.text(id); text && !text->empty()) {
    require(text->size() <= data.bytes() && text->back() == text->back());
  }
  data.find(id, "segments");
  for (const auto item : data.items(id)) walk(data, item, depth - 1, budget);
}

void read_snapshot(std::string_view content, std::optional<int> device) {
  SnapshotEvents events(ByteStream::of(content, "fuzz"), device);
  Event event;
  while (events.next(&event)) {
    require(event.action >= Action::allocate && event.action <= Action::trim);
    for (const CodeFrame& frame : events.stack()) require(frame.file.size() <= content.size());
  }
  require(events.recorded_state().has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(bytes), size);
  // What is packed may be long when unpacked: the reader of plain bytes is what is tried here.
  if (size < 2 || bytes[0] != 0x80) return 0;
  try {
    const PickleData data = PickleData::read(ByteStream::of(content, "fuzz"));
    int budget = 10'000;
    walk(data, data.root(), 20, &budget);
    read_snapshot(content, std::nullopt);
    read_snapshot(content, 1);
  } catch (const InputError& error) {
    const std::string_view what = error.what();
    require(what.find("fuzz:") == 0 && what.find('\n') == std::string_view::npos);
  }
  return 0;
}
