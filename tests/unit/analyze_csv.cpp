// RMM's log: what is taken, what is not, and what is said then.
#include <string>
#include <vector>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/csv_fields.hpp"
#include "core/analyze/csv_reader.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::contains;

namespace {

const std::string header = "Thread,Time,Action,Pointer,Size,Stream\n";

std::vector<Event> read_all(const std::string& content, std::uint64_t* incomplete = nullptr) {
  CsvReader reader(ByteStream::of(content, "log.csv"));
  std::vector<Event> events;
  Event event;
  while (reader.next(&event)) events.push_back(event);
  if (incomplete != nullptr) *incomplete = reader.incomplete();
  return events;
}

std::string error_of(const std::string& content) {
  return testing::input_error([&] { read_all(content); });
}

constexpr std::int64_t second = 1'000'000'000;

}  // namespace

TEST_CASE("every kind of row is read") {
  const auto events = read_all(header +
                               "7,00:00:01.250000,allocate,0x7f00,512,0x55aa\n"
                               "8,00:00:02.000001,allocate failure,(nil),18446744073709551615,2\n"
                               "7,00:00:03.5,free,0x7f00,512,0\n"
                               "7,00:00:04,trim,,,\n");
  REQUIRE(events.size() == 4);
  CHECK(events[0].thread == 7);
  CHECK(events[0].time_ns == 1'250'000'000);
  CHECK(events[0].action == Action::allocate);
  CHECK(events[0].address == 0x7f00);
  CHECK(events[0].size == 512);
  CHECK(events[0].stream == 0x55aa);
  CHECK(events[1].action == Action::allocate_failure);
  CHECK(events[1].address == 0);
  CHECK(events[1].size == unlimited);
  CHECK(events[2].action == Action::free);
  CHECK(events[2].time_ns == 3'500'000'000);
  CHECK(events[3].action == Action::trim);
}

TEST_CASE("columns go by their names") {
  const auto events = read_all("Size,Note,Pointer,Action\r\n64,x,0x10,allocate\r\n\r\n");
  REQUIRE(events.size() == 1);
  CHECK(events[0].size == 64);
  CHECK(events[0].address == 0x10);
  CHECK(events[0].stream == 0);
  CHECK(contains(error_of("Thread,Time,Action,Size\n"), "log.csv:1: no column 'Pointer'"));
}

TEST_CASE("times with a date, without one, and over midnight") {
  CHECK(time_field("1970-01-02 00:00:01.5") == 86'401 * second + second / 2);
  CHECK(time_field("2024-02-29T12:00:00") == 1'709'208'000 * second);
  CHECK(time_field("2000-03-01 00:00:00") == 951'868'800 * second);
  CHECK(time_field("23:59:59:000001") == 86'399 * second + 1000);
  CHECK(time_field("00:00:00.1234567899") == 123'456'789);
  for (const char* bad : {"", "1", "1:2", "24:00:00", "00:60:00", "00:00:61", "00:00:00.x",
                          "2024-13-01 00:00:00", "2024-00-01 00:00:00", "0224-02-29 00:00:00",
                          "2262-01-01 00:00:00", "-1:00:00", "00:00:0a"}) {
    CAPTURE(bad);
    CHECK_FALSE(time_field(bad).has_value());
  }
  CHECK(time_field("2261-12-31 23:59:60.999999999") > 0);
  const auto events = read_all(header +
                               "1,23:59:59.9,allocate,0x1,1,0\n"
                               "1,00:00:00.1,free,0x1,1,0\n"
                               "2,23:59:59.9,allocate,0x1,1,0\n"
                               "1,00:00:00.2,free,0x1,1,0\n");
  CHECK(events[1].time_ns - events[0].time_ns == second / 5);
  CHECK(events[2].time_ns == events[0].time_ns);  // a late thread is not a day behind
  CHECK(events[3].time_ns - events[0].time_ns == 3 * (second / 10));
}

TEST_CASE("a bad row is told with its place and what would be right") {
  CHECK(error_of(header + "1,00:00:00,alocate,0x1,1,0\n") ==
        "log.csv:2: bad Action 'alocate' in '1,00:00:00,alocate,0x1,1,0'; "
        "expected allocate, allocate failure, free or trim");
  CHECK(contains(error_of(header + "\n1,noon,free,0x1,1,0\n"), "log.csv:3: bad Time"));
  CHECK(contains(error_of(header + "1,00:00:00,free,7f00g,1,0\n"), "bad Pointer"));
  CHECK(contains(error_of(header + "1,00:00:00,free,0x,1,0\n"), "bad Pointer"));
  CHECK(contains(error_of(header + "1,00:00:00,allocate,0x1,-1,0\n"), "bad Size '-1'"));
  CHECK(contains(error_of(header + "1,00:00:00,allocate,0x1,1.5,0\n"), "bad Size"));
  CHECK(
      contains(error_of(header + "1,00:00:00,allocate,0x1,18446744073709551616,0\n"), "bad Size"));
  CHECK(contains(error_of(header + "x,00:00:00,allocate,0x1,1,0\n"), "bad Thread"));
  CHECK(contains(error_of(header + "1,00:00:00,allocate,0x1,1,s\n"), "bad Stream"));
  CHECK(contains(error_of(header + "1,00:00:00,allocate,0x1\n"), "bad Size ''"));
  CHECK(contains(error_of(header + "1,00:00:00,\x1b[31m,0x1,1,0\n"), "'?[31m'"));
}

TEST_CASE("a last row that is cut off is left out") {
  const std::string whole = header + "1,00:00:00,allocate,0x1,100,0\n1,00:00:01,free,0x1,100,0\n";
  std::uint64_t incomplete = 9;
  CHECK(read_all(whole, &incomplete).size() == 2);
  CHECK(incomplete == 0);
  CHECK(read_all(whole.substr(0, whole.size() - 1)).size() == 2);  // only its end of line
  CHECK(read_all(whole.substr(0, whole.size() - 12), &incomplete).size() == 1);
  CHECK(incomplete == 1);
  CHECK(error_of(header + "1,00:00:00,alloc\n1,00:00:01,free,0x1,100,0\n") != "");
}

TEST_CASE("a file without line ends is refused in bounded memory") {
  CHECK(contains(error_of(header + std::string(3 << 20, 'x')), "log.csv:2"));
}

TEST_CASE("rows at the edges of the read buffer are whole") {
  std::string content = header;
  constexpr std::uint64_t count = 60'000;  // some megabytes, in rows of different lengths
  for (std::uint64_t i = 0; i < count; ++i) {
    content += "1,00:00:00,allocate,0x1000," + std::to_string(i * i) + ",0\n";
  }
  const auto events = read_all(content);
  REQUIRE(events.size() == count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (events[i].size != i * i) FAIL("row " << i);
  }
}
