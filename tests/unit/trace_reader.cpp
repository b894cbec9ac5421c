// Binary traces that are cut, have holes, or are something else.
#include "core/analyze/trace_reader.hpp"

#include <cstring>

#include "core/analyze/event_source.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;

namespace {

Event event_at(std::int64_t time, Action action = Action::allocate) {
  Event event;
  event.time_ns = time;
  event.address = 0x1000;
  event.size = 512;
  event.action = action;
  return event;
}

std::string bytes_of(const void* data, std::size_t size) {
  return {static_cast<const char*>(data), size};
}

std::string trace_of(const std::vector<Event>& events, const TraceHeader& header = {}) {
  std::string out = bytes_of(&header, sizeof header);
  for (const Event& event : events) {
    const TraceRecord record = pack_record(event, 0);
    out += bytes_of(&record, sizeof record);
  }
  return out;
}

std::vector<Event> read_all(const std::string& content, std::uint64_t* incomplete = nullptr) {
  const auto source = open_events(ByteStream::of(content, "t"));
  std::vector<Event> events;
  Event event;
  while (source->next(&event)) events.push_back(event);
  if (incomplete != nullptr) *incomplete = source->incomplete();
  return events;
}

std::string error_of(const std::string& content) {
  return testing::input_error([&] { read_all(content); });
}

}  // namespace

TEST_CASE("times of a binary trace are since the epoch") {
  TraceHeader header;
  header.realtime_ns = 1'000'000;
  CHECK(read_all(trace_of({event_at(7)}, header)).at(0).time_ns == 1'000'007);
}

TEST_CASE("records that were never finished are passed over, and counted if others follow") {
  const Event hole;
  std::uint64_t incomplete = 0;
  CHECK(read_all(trace_of({event_at(1), hole, event_at(2)}), &incomplete).size() == 2);
  CHECK(incomplete == 1);
  CHECK(read_all(trace_of({event_at(1), hole, hole}), &incomplete).size() == 1);
  CHECK(incomplete == 0);
}

TEST_CASE("a trace may be cut anywhere behind its header") {
  const std::string whole = trace_of({event_at(1), event_at(2)});
  for (std::size_t size = sizeof(TraceHeader); size < whole.size(); ++size) {
    const std::size_t records = (size - sizeof(TraceHeader)) / sizeof(TraceRecord);
    CHECK(read_all(whole.substr(0, size)).size() == records);
  }
  for (std::size_t size = sizeof trace_magic; size < sizeof(TraceHeader); ++size) {
    CHECK(error_of(whole.substr(0, size)) != "");
  }
}

TEST_CASE("traces of another format are refused with both numbers") {
  TraceHeader header;
  header.version = 9;
  CHECK(error_of(trace_of({}, header)) == "t: trace format 9; this version reads formats 1 to 2");
  CHECK(contains(error_of(trace_of({event_at(1, static_cast<Action>(77))})),
                 "record 1: unknown action 77"));
}

TEST_CASE("a trace that begins at no possible time is refused") {
  TraceHeader header;
  for (const std::int64_t start : {std::int64_t{-1}, INT64_MAX}) {
    header.realtime_ns = start;
    CHECK(contains(error_of(trace_of({event_at(1)}, header)), "at no time"));
  }
}

TEST_CASE("what is no trace at all is told so") {
  CHECK(contains(error_of(std::string("\x80\x04\x95stuff", 8)), "t: at byte 3: cut off"));
  CHECK(contains(error_of(std::string("\x7f"
                                      "ELF\0\0\0",
                                      7)),
                 "neither"));
  CHECK(contains(error_of("hello\n"), "t:1: no column 'Action'"));
  CHECK(contains(error_of(""), "no column"));
}
