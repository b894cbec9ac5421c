// PyTorch snapshots as traces (tests/data/snapshots/make says what is in them).
#include "core/analyze/snapshot_events.hpp"

#include "config/conf_string.hpp"
#include "core/analyze/replay.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;
using testing::input_error;

namespace {

std::string path(const std::string& name) {
  return FRAGSHIM_TEST_DATA "/snapshots/" + name + ".pickle";
}

std::vector<Event> events_of(const std::string& name, std::optional<int> device = {}) {
  const auto source = open_events(path(name), {device});
  std::vector<Event> events;
  Event event;
  while (source->next(&event)) events.push_back(event);
  return events;
}

ReplayResult replay_snapshot(const std::string& name, const std::string& conf = "") {
  ReplayOptions options;
  options.config = parse_conf(conf).allocation;
  return replay(*open_events(path(name)), options);
}

Bytes stated(const std::string& name) {
  return open_events(path(name))->recorded_state().value().reserved;
}

}  // namespace

TEST_CASE("a snapshot of a whole run, in every protocol") {
  for (const char* protocol : {"2", "3", "4", "5"}) {
    const auto events = events_of("whole" + std::string(protocol));
    REQUIRE(events.size() == 5);
    CHECK(events[0].action == Action::allocate);
    CHECK(events[0].size == 5 * MiB);
    CHECK(events[0].time_ns == 1'700'000'000'000'001'000);
    CHECK(events[1].action == Action::free);
    CHECK(events[2].action == Action::trim);
    CHECK(events[3].size == 1000);
    CHECK(events[4].size == 40 * MiB - 100);
  }
}

TEST_CASE("a replay reserves what the snapshot states") {
  for (const char* name : {"whole4", "no_stacks"}) {
    CHECK(replay_snapshot(name).reserved_end == stated(name));
    CHECK(stated(name) == 42 * MiB);
  }
  const std::string conf = open_events(path("expandable"))->recorded_state().value().conf;
  CHECK(conf == "expandable_segments:True");
  CHECK(replay_snapshot("expandable", conf).reserved_end == stated("expandable"));
  CHECK(replay_snapshot("expandable", conf).reserved_peak == 40 * MiB);
}

// Made by PyTorch 2.11 on an H200, which stated these bytes by torch.cuda.memory_reserved as well.
TEST_CASE("real snapshots: the replay reserves what PyTorch reserved") {
  CHECK(stated("torch_2.11_native") == 488'636'416);
  CHECK(replay_snapshot("torch_2.11_native").reserved_end == 488'636'416);
  CHECK(stated("torch_2.11_expandable") == 517'996'544);
  const auto expandable = replay_snapshot("torch_2.11_expandable", "expandable_segments:True");
  CHECK(expandable.reserved_end == 517'996'544);
}

TEST_CASE("blocks older than the recording come first") {
  const auto events = events_of("wrapped");
  REQUIRE(events.size() == 6);
  CHECK(events[0].action == Action::allocate);
  CHECK(events[0].size == 3 * MiB);  // freed without an allocation
  CHECK(events[0].stream == 7);
  CHECK(events[1].size == 6 * MiB - 9);  // in use, and never allocated in the trace
  CHECK(events[1].stream == 0);
  CHECK(events[2].action == Action::free);
  CHECK(events[2].address == events[0].address);
  CHECK(events[4].action == Action::allocate_failure);
  CHECK(open_events(path("wrapped"))->recorded_state().value().alive_before == 2);
  // A block whose free is not completed is alive.
  CHECK(replay_snapshot("wrapped").allocated_end == 12 * MiB);
}

TEST_CASE("one device of several") {
  CHECK(events_of("wrapped", 1).size() == 6);
  CHECK(events_of("wrapped", 0).empty());
  CHECK(open_events(path("wrapped"), {0})->recorded_state().value().reserved == 2 * MiB);
  const std::string what = input_error([] { events_of("wrapped", 3); });
  CHECK(contains(what, "nothing of device 3; it has 0, 1"));
  CHECK_FALSE(input_error([] { events_of("wrapped", -1); }).empty());
}

TEST_CASE("the lines of code are kept") {
  const auto source = open_events(path("whole4"));
  Event event;
  REQUIRE(source->next(&event));
  const auto stack = source->stack();
  REQUIRE(stack.size() == 4);
  CHECK(stack[2].function == "warm");
  CHECK(stack[2].file == "/home/user/train.py");
  CHECK(stack[2].line == 10);
  REQUIRE(source->next(&event));
  CHECK(source->stack().empty());
  const auto without = open_events(path("no_stacks"));
  REQUIRE(without->next(&event));
  CHECK(without->stack().empty());
}

TEST_CASE("pickles that are no snapshot") {
  using namespace std::string_literals;
  const auto refusal = [](const std::string& content) {
    return input_error([&] { open_events(ByteStream::of(content, "p")); });
  };
  CHECK(contains(refusal("\x80\x04}."s), "no PyTorch memory snapshot"));
  CHECK(contains(refusal("\x80\x04]."s), "no PyTorch memory snapshot"));
  CHECK(contains(refusal("\x80\x04"
                         "cos\nsystem\n."s),
                 "names or calls code"));
}
