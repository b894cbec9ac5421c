// Conversions: what comes out is what went in, and the formats of others are as they read them.
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/analyze/convert.hpp"
#include "core/analyze/pickle_data.hpp"
#include "core/analyze/pickle_writer.hpp"
#include "core/analyze/replay.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;

namespace {

const std::string data = FRAGSHIM_TEST_DATA;

const std::string rows =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,2024-02-29 23:59:59.123456789,allocate,0x7f00000,1000,0\n"
    "2,2024-02-29 23:59:59.223456789,allocate,0x7f10000,30000000,0x55aa\n"
    "1,2024-03-01 00:00:00.000000000,free,0x7f00000,1000,0\n"
    "1,2024-03-01 00:00:00.500000000,allocate failure,(nil),77,3\n"
    "1,2024-03-01 00:00:01.000000000,trim,,,\n"
    "1,2024-03-01 00:00:02.000000000,allocate,0x7f00000,2000,0\n";

std::string converted(const std::string& content, TraceFormat format) {
  std::ostringstream out;
  convert(*open_events(ByteStream::of(content, "in")), format, out);
  return out.str();
}

std::vector<Event> events_of(const std::string& content) {
  const auto source = open_events(ByteStream::of(content, "in"));
  std::vector<Event> events;
  Event event;
  while (source->next(&event)) events.push_back(event);
  return events;
}

void check_equal(const std::vector<Event>& left, const std::vector<Event>& right) {
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    INFO(i);
    CHECK(left[i].action == right[i].action);
    CHECK(left[i].time_ns == right[i].time_ns);
    CHECK(left[i].address == right[i].address);
    CHECK(left[i].size == right[i].size);
    CHECK(left[i].stream == right[i].stream);
    CHECK(left[i].thread == right[i].thread);
    CHECK(left[i].door == right[i].door);
  }
}

ReplayResult replay_text(const std::string& content) {
  return replay(*open_events(ByteStream::of(content, "in")), {});
}

}  // namespace

TEST_CASE("the format goes by the ending of the name") {
  CHECK(format_of("a/b.csv") == TraceFormat::csv);
  CHECK(format_of("b.fstrace") == TraceFormat::binary);
  CHECK(format_of("b.pickle") == TraceFormat::snapshot);
  CHECK(format_of("b.json") == TraceFormat::perfetto);
  CHECK_FALSE(format_of("b.csv.gz"));
  CHECK_FALSE(format_of("csv"));
}

TEST_CASE("CSV and binary traces turn into each other without loss") {
  const auto events = events_of(rows);
  const std::string binary = converted(rows, TraceFormat::binary);
  check_equal(events_of(binary), events);
  CHECK(converted(binary, TraceFormat::csv) == rows);
  CHECK(converted(rows, TraceFormat::csv) == rows);
  const std::string undated =
      "Thread,Time,Action,Pointer,Size,Stream\n"
      "1,00:00:20.278032000,allocate,0x700,512,0\n";
  CHECK(converted(converted(undated, TraceFormat::binary), TraceFormat::csv) == undated);
  const std::string empty = "Thread,Time,Action,Pointer,Size,Stream\n";
  CHECK(converted(converted(empty, TraceFormat::binary), TraceFormat::csv) == empty);
}

TEST_CASE("a snapshot of a trace replays as the trace does, and states what it reserves") {
  for (const char* trace : {"rl", "offload"}) {
    std::ostringstream out;
    convert(*open_events(data + "/traces/" + trace + ".csv.xz"), TraceFormat::snapshot, out);
    const std::string content = out.str();
    const ReplayResult snapshot = replay_text(content);
    const ReplayResult original = replay(*open_events(data + "/traces/" + trace + ".csv.xz"), {});
    CHECK(snapshot.requested_peak == original.requested_peak);
    CHECK(snapshot.reserved_peak == original.reserved_peak);
    CHECK(snapshot.reserved_end == original.reserved_end);
    CHECK(snapshot.device_alloc == original.device_alloc);
    CHECK(snapshot.device_free == original.device_free);
    const auto source = open_events(ByteStream::of(content, "in"));
    CHECK(source->recorded_state().value().reserved == original.reserved_end);
    CHECK(source->recorded_state().value().alive_before == 0);
  }
}

TEST_CASE("a snapshot has what viewers look for") {
  const std::string content = converted(rows, TraceFormat::snapshot);
  const PickleData pickle = PickleData::read(ByteStream::of(content, "s"));
  const auto segments = pickle.find(pickle.root(), "segments");
  REQUIRE(segments);
  REQUIRE_FALSE(pickle.items(*segments).empty());
  for (const auto segment : pickle.items(*segments)) {
    for (const char* key : {"device", "address", "total_size", "stream", "blocks", "frames"}) {
      CHECK(pickle.find(segment, key));
    }
    std::int64_t sum = 0;
    const auto blocks = pickle.items(*pickle.find(segment, "blocks"));
    for (const auto block : blocks) sum += *pickle.integer(*pickle.find(block, "size"));
    CHECK(sum == pickle.integer(*pickle.find(segment, "total_size")));
  }
  const auto traces = pickle.find(pickle.root(), "device_traces");
  REQUIRE(traces);
  std::string actions;
  for (const auto entry : pickle.items(pickle.items(*traces)[0])) {
    actions += std::string(*pickle.text(*pickle.find(entry, "action"))) + " ";
    CHECK(pickle.find(entry, "frames"));
    CHECK(pickle.find(entry, "time_us"));
  }
  CHECK(actions ==
        "segment_alloc alloc segment_alloc alloc free_requested free_completed segment_free "
        "segment_alloc alloc ");
}

TEST_CASE("the lines of code go from snapshot to snapshot") {
  const std::string whole = testing::read_file(data + "/snapshots/whole4.pickle");
  const auto before = open_events(ByteStream::of(whole, "a"));
  const std::string again = converted(whole, TraceFormat::snapshot);
  const auto after = open_events(ByteStream::of(again, "b"));
  Event event;
  while (before->next(&event)) {
    Event other;
    REQUIRE(after->next(&other));
    CHECK(event.action == other.action);
    CHECK(event.size == other.size);
    const auto left = before->stack();
    const auto right = after->stack();
    REQUIRE(left.size() == right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      CHECK(left[i].function == right[i].function);
      CHECK(left[i].file == right[i].file);
      CHECK(left[i].line == right[i].line);
    }
  }
}

TEST_CASE("counters for Perfetto end where the replay ends") {
  const auto json = nlohmann::json::parse(converted(rows, TraceFormat::perfetto));
  Bytes requested = 0;
  Bytes reserved_most = 0;
  double last = 0;
  bool emptied = false;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M") continue;
    CHECK(event["ts"].get<double>() >= last);
    last = event["ts"];
    emptied |= event["name"] == "cache emptied";
    if (event["name"] == "requested") requested = event["args"]["bytes"];
    if (event["name"] == "reserved") {
      reserved_most = std::max(reserved_most, event["args"]["bytes"].get<Bytes>());
    }
  }
  CHECK(emptied);
  CHECK(requested == 30'002'000);
  CHECK(reserved_most == replay_text(rows).reserved_peak);
}

TEST_CASE("a pickle that is written is read as it was") {
  std::ostringstream out;
  PickleWriter writer(out);
  const std::vector<std::int64_t> numbers = {0,           255,         256,        65535,
                                             65536,       -1,          2147483647, 2147483648,
                                             -2147483648, -2147483649, INT64_MAX,  INT64_MIN};
  writer.begin_list();
  for (const std::int64_t number : numbers) writer.integer(number);
  writer.flush_list();
  for (int i = 0; i < 600; ++i) writer.text("text " + std::to_string(i % 300));
  writer.real(-1.5);
  writer.boolean(true);
  writer.none();
  writer.end_list();
  writer.finish();
  const std::string content = out.str();
  const PickleData data_read = PickleData::read(ByteStream::of(content, "p"));
  const auto items = data_read.items(data_read.root());
  REQUIRE(items.size() == numbers.size() + 603);
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(data_read.integer(items[i]) == numbers[i]);
  for (std::size_t i = 0; i < 600; ++i) {
    CHECK(data_read.text(items[numbers.size() + i]) == "text " + std::to_string(i % 300));
  }
  CHECK(data_read.number(items[numbers.size() + 600]) == -1.5);
  CHECK(data_read.boolean(items[numbers.size() + 601]) == true);
}
