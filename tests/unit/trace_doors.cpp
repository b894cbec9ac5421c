// Recordings that know their doors: whose requests a replay takes.
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/convert.hpp"
#include "core/analyze/diagnosis.hpp"
#include "core/analyze/replay_output.hpp"
#include "core/analyze/tune_output.hpp"
#include "core/record/trace_writer.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;
using testing::Folder;

namespace {

constexpr EventDoor synchronous = EventDoor::synchronous;
constexpr EventDoor ordered = EventDoor::stream_ordered;

Event allocation(EventDoor door, Address address, Bytes size) {
  return {0, address, size, 0, 1, Action::allocate, door};
}
Event release(EventDoor door, Address address) { return {0, address, 0, 0, 1, Action::free, door}; }

/// The file that a recording of these events leaves.
std::string recording(const std::vector<Event>& events) {
  const Folder folder;
  TraceWriter writer;
  REQUIRE(writer.open(folder.file("t").c_str(), {}).ok());
  for (const Event& event : events) writer.append(event);
  writer.close();
  return testing::read_file(writer.path());
}

ReplayResult replay_recording(const std::string& content) {
  return replay(*open_events(ByteStream::of(content, "t")), {});
}

/// A workspace by cudaMalloc beside an allocator that uses cudaMallocAsync.
const std::vector<Event> both = {allocation(synchronous, 0x1000, 128 * MiB),
                                 allocation(ordered, 0x2000, 30 * MiB),
                                 allocation(synchronous, 0x3000, 8 * MiB),
                                 release(ordered, 0x1000),
                                 release(synchronous, 0x2000),
                                 allocation(ordered, 0x4000, 10 * MiB)};

}  // namespace

TEST_CASE("beside stream-ordered requests those of cudaMalloc are left out, and counted") {
  const ReplayResult r = replay_recording(recording(both));
  CHECK(r.events == 6);
  CHECK(r.left_out_events == 3);
  CHECK(r.left_out_peak == 136 * MiB);
  CHECK(r.requested_peak == 30 * MiB);
  CHECK(r.allocated_end == 10 * MiB);
  CHECK(r.unmatched_frees == 0);
  CHECK(r.implied_frees == 0);
}

TEST_CASE("a recording of cudaMalloc alone is replayed in whole") {
  const auto r = replay_recording(
      recording({allocation(synchronous, 0x1000, 128 * MiB), release(ordered, 0x1000)}));
  CHECK(r.left_out_events == 0);
  CHECK(r.requested_peak == 128 * MiB);
  CHECK(r.allocated_end == 0);
}

TEST_CASE("recordings of version 1 have no doors and are replayed in whole") {
  std::vector<Event> events = both;
  for (Event& event : events) event.door = EventDoor::unknown;
  std::string content = recording(events);
  const std::uint32_t version = 1;
  std::memcpy(content.data() + offsetof(TraceHeader, version), &version, sizeof version);
  const ReplayResult r = replay_recording(content);
  CHECK(r.left_out_events == 0);
  CHECK(r.requested_peak == 166 * MiB);
}

TEST_CASE("an address that comes again through the other door implies a free") {
  const auto r = replay_recording(
      recording({allocation(ordered, 0x1000, 4 * MiB), allocation(synchronous, 0x1000, 9 * MiB),
                 allocation(ordered, 0x1000, 2 * MiB), release(ordered, 0x1000)}));
  CHECK(r.requested_peak == 4 * MiB);
  CHECK(r.allocated_end == 0);
  CHECK(r.implied_frees == 1);
  CHECK(r.unmatched_frees == 0);
  CHECK(r.left_out_peak == 9 * MiB);
}

TEST_CASE("a door that does not exist is refused") {
  std::string content = recording({allocation(ordered, 0x1000, MiB)});
  content[sizeof(TraceHeader)] = static_cast<char>(0xc1);
  CHECK(contains(testing::input_error([&] { replay_recording(content); }), "unknown action 193"));
}

TEST_CASE("a conversion keeps every event and its door") {
  const std::string content = recording(both);
  const auto convert_to = [&](TraceFormat format) {
    std::ostringstream out;
    convert(*open_events(ByteStream::of(content, "t")), format, out);
    return out.str();
  };
  CHECK(replay_recording(convert_to(TraceFormat::binary)).left_out_peak == 136 * MiB);
  CHECK(replay_recording(convert_to(TraceFormat::csv)).requested_peak == 166 * MiB);
  CHECK(replay_recording(convert_to(TraceFormat::snapshot)).requested_peak == 166 * MiB);
}

TEST_CASE("what is left out is told wherever a recording is replayed") {
  const std::string content = recording(both);
  const std::string note = "3 events of cudaMalloc left out";
  ReplayedTrace replayed;
  replayed.result = replay_recording(content);
  CHECK(contains(replay_text({replayed}), note));
  CHECK(nlohmann::json::parse(replay_json(replayed))["left_out_peak"] == 136 * MiB);

  std::vector<TuneTrace> traces;
  traces.push_back({"t", StoredSteps(*open_events(ByteStream::of(content, "t")))});
  CHECK(traces[0].steps.requested_peak() == 30 * MiB);
  const Tuning tuning = tune(traces, {});
  CHECK(contains(tune_text(traces, tuning), note));
  CHECK(tune_json(traces, tuning)["traces"][0]["left_out_events"] == 3);

  const Diagnosis diagnosis = diagnose("t", *open_events(ByteStream::of(content, "t")), {});
  CHECK(contains(diagnosis_text(diagnosis), note));
  CHECK(diagnosis_json(diagnosis)["left_out_peak"] == 136 * MiB);
}
