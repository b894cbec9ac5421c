// The trace of a program that uses both doors tells them apart.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/record/trace_format.hpp"
#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

namespace {

/// This process's own trace, as far as it goes now.
std::string own_trace() {
  const char* const pattern = std::getenv("FRAGSHIM_TRACE");
  REQUIRE(pattern != nullptr);
  std::string path = pattern;
  const std::size_t process = path.find("%p");
  REQUIRE(process != std::string::npos);
  path.replace(process, 2, std::to_string(getpid()));
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TraceHeader header_of(const std::string& trace) {
  TraceHeader header;
  REQUIRE(trace.size() >= sizeof header);
  std::memcpy(&header, trace.data(), sizeof header);
  return header;
}

/// The last event of an action at an address.
Event last_event(const std::string& trace, Action action, Address address) {
  Event found;
  for (std::size_t at = sizeof(TraceHeader); at + sizeof(TraceRecord) <= trace.size();
       at += sizeof(TraceRecord)) {
    TraceRecord record;
    std::memcpy(&record, trace.data() + at, sizeof record);
    const Event event = unpack_record(record);
    if (event.action == action && event.address == address) found = event;
  }
  return found;
}

}  // namespace

TEST_CASE("each event of a trace tells its door, and the header which there were", "[traced]") {
  const Primary context;
  const CUdeviceptr malloced = allocate(3 * MiB);
  CHECK((header_of(own_trace()).doors & stream_ordered_bit) == 0);
  const Stream stream;
  const CUdeviceptr ordered = allocate_on(stream, 3 * MiB);
  const std::string trace = own_trace();
  CHECK(header_of(trace).version == trace_version);
  CHECK((header_of(trace).doors & stream_ordered_bit) != 0);
  CHECK(last_event(trace, Action::allocate, malloced).door == EventDoor::synchronous);
  CHECK(last_event(trace, Action::allocate, ordered).door == EventDoor::stream_ordered);
  // Either door frees the other's blocks: the event tells the call.
  release_on(stream, malloced);
  release(ordered);
  CHECK(last_event(own_trace(), Action::free, malloced).door == EventDoor::stream_ordered);
  CHECK(last_event(own_trace(), Action::free, ordered).door == EventDoor::synchronous);
}
