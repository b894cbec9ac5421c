// Any bytes as a trace of any kind: told apart by content, read to the end or refused in one line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/event_source.hpp"
#include "core/analyze/input_error.hpp"
#include "core/record/trace_format.hpp"

using namespace fragshim;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// What a record holds survives being written again.
void check_packing(const Event& event) {
  if (event.size > trace_size_limit || event.time_ns < 0 || event.time_ns >> 55 != 0) return;
  const Event again = unpack_record(pack_record(event, 0));
  require(again.time_ns == event.time_ns && again.address == event.address);
  require(again.size == event.size && again.action == event.action);
  require(again.door == event.door);
  require(again.stream == fold_stream(event.stream) && again.thread == event.thread);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto source =
        open_events(ByteStream::of({reinterpret_cast<const char*>(data), size}, "fuzz"));
    Event event;
    // What is packed may be long when unpacked: its beginning is enough.
    for (int i = 0; i < 100'000 && source->next(&event); ++i) {
      require(event.action >= Action::allocate && event.action <= Action::trim);
      check_packing(event);
    }
  } catch (const InputError& error) {
    require(std::string_view(error.what()).find("fuzz:") == 0);
  }
  return 0;
}
