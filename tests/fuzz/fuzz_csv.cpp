// RMM's log from any bytes: events or one clear line, and a replay that survives them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/csv_reader.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/replay.hpp"

using namespace fragshim;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Counts rows on their way, and holds them to what a reader promises.
class CheckedSource final : public EventSource {
 public:
  explicit CheckedSource(EventSource& inner) : inner_(inner) {}
  bool next(Event* event) override {
    if (!inner_.next(event)) return false;
    require(event->action >= Action::allocate && event->action <= Action::trim);
    ++count_;
    return true;
  }
  std::uint64_t count() const { return count_; }

 private:
  EventSource& inner_;
  std::uint64_t count_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    CsvReader reader(ByteStream::of({reinterpret_cast<const char*>(data), size}, "fuzz.csv"));
    CheckedSource source(reader);
    ReplayOptions options;
    options.capacity = GiB;
    const ReplayResult result = replay(source, options);
    require(result.events == source.count());
    require(result.reserved_peak <= options.capacity);
    require(result.allocated_peak <= result.reserved_peak);
    require(result.requested_peak <= result.allocated_peak);
    require(result.reserved_end <= result.reserved_peak);
  } catch (const InputError& error) {
    const std::string_view line = error.what();
    require(line.find("fuzz.csv:") == 0 && line.find('\n') == std::string_view::npos);
  }
  return 0;
}
