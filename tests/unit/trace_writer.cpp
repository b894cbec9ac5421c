// The binary trace: what is written is read back, however the writing ends.
#include "core/record/trace_writer.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <thread>
#include <vector>

#include "core/analyze/event_source.hpp"
#include "core/analyze/trace_reader.hpp"
#include "tests/catch.hpp"
#include "tests/unit/trace_support.hpp"

using namespace fragshim;
using testing::Folder;

namespace {

Event sample_event(std::uint64_t i, std::uint32_t thread = 1) {
  Event event;
  event.time_ns = static_cast<std::int64_t>(1000 + i);
  event.address = 0x7f0000000000 + 512 * i;
  event.size = 3 * i + 1;
  event.stream = 0x55aabbccdd00 + i % 7;
  event.thread = thread;
  event.action = i % 2 == 0 ? Action::allocate : Action::free;
  return event;
}

std::vector<Event> read_all(const std::string& path, std::uint64_t* incomplete = nullptr) {
  const auto source = open_events(path);
  std::vector<Event> events;
  Event event;
  while (source->next(&event)) events.push_back(event);
  if (incomplete != nullptr) *incomplete = source->incomplete();
  return events;
}

std::atomic<int> stopped_by{0};
std::atomic<int> stops{0};
void note_stop(int error) noexcept {
  stopped_by = error;
  ++stops;
}

/// Runs `body` in a child, which ends by SIGKILL or with the status that body gives.
template <typename Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a record holds what an event says") {
  Event event = sample_event(6);
  event.size = trace_size_limit;
  event.thread = 0xffffffff;
  event.action = Action::trim;
  event.door = EventDoor::stream_ordered;
  const Event back = unpack_record(pack_record(event, 500));
  CHECK(back.time_ns == event.time_ns - 500);
  CHECK(back.address == event.address);
  CHECK(back.size == event.size);
  CHECK(back.stream == event.stream);
  CHECK(back.thread == event.thread);
  CHECK(back.action == event.action);
  CHECK(back.door == event.door);

  event.size = unlimited;
  CHECK(unpack_record(pack_record(event, 0)).size == trace_size_limit);
  CHECK(unpack_record(pack_record(event, 1 << 20)).time_ns == 0);
  // A handle of more than 48 bits does not become another that fits.
  CHECK(fold_stream(0x100055aabbccdd00) != fold_stream(0x55aabbccdd00));
}

TEST_CASE("a trace is read back as it was written") {
  Folder folder;
  TraceWriter writer;
  TraceHeader header;
  header.start_ns = 1000;
  header.device = 3;
  header.device_total = 80 * GiB;
  REQUIRE(writer.open(folder.file("t").c_str(), header).ok());
  CHECK(writer.path() == folder.file("t"));
  constexpr std::uint64_t count = 100'000;  // over several windows
  for (std::uint64_t i = 0; i < count; ++i) writer.append(sample_event(i));
  writer.close();
  writer.append(sample_event(0));  // dropped
  CHECK(std::filesystem::file_size(writer.path()) == sizeof(TraceHeader) + 32 * count);

  struct stat info {};
  REQUIRE(stat(writer.path(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);

  TraceReader reader(ByteStream::open(writer.path()));
  CHECK(reader.header().device == 3);
  CHECK(reader.header().device_total == 80 * GiB);
  CHECK(reader.header().pid == static_cast<std::uint32_t>(getpid()));
  Event event;
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE(reader.next(&event));
    const Event expected = sample_event(i);
    if (event.address != expected.address || event.size != expected.size ||
        event.stream != expected.stream || event.action != expected.action ||
        event.time_ns - reader.header().realtime_ns != expected.time_ns - header.start_ns) {
      FAIL("record " << i);
    }
  }
  CHECK_FALSE(reader.next(&event));
  CHECK(reader.incomplete() == 0);
}

TEST_CASE("many threads append without loss") {
  Folder folder;
  TraceWriter writer;
  REQUIRE(writer.open(folder.file("t").c_str(), {}).ok());
  constexpr std::uint32_t threads = 8;
  constexpr std::uint64_t each = 40'000;
  std::vector<std::thread> running;
  for (std::uint32_t t = 0; t < threads; ++t) {
    running.emplace_back([&writer, t] {
      for (std::uint64_t i = 0; i < each; ++i) writer.append(sample_event(i, t));
    });
  }
  for (std::thread& thread : running) thread.join();
  writer.close();

  std::map<std::uint32_t, std::uint64_t> next;
  for (const Event& event : read_all(writer.path())) {
    const std::uint64_t i = next[event.thread]++;  // a thread's records keep their order
    if (event.address != sample_event(i).address) FAIL("thread " << event.thread << ", " << i);
  }
  CHECK(next.size() == threads);
  for (const auto& [thread, count] : next) CHECK(count == each);
}

TEST_CASE("closing while others append neither loses nor tears a record") {
  Folder folder;
  TraceWriter writer;
  REQUIRE(writer.open(folder.file("t").c_str(), {}).ok());
  std::atomic<bool> enough{false};
  std::vector<std::thread> running;
  for (std::uint32_t t = 0; t < 4; ++t) {
    running.emplace_back([&writer, &enough, t] {
      for (std::uint64_t i = 0; !enough; ++i) writer.append(sample_event(i, t));
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  writer.close();
  enough = true;
  for (std::thread& thread : running) thread.join();
  std::map<std::uint32_t, std::uint64_t> next;
  for (const Event& event : read_all(writer.path())) {
    if (event.address != sample_event(next[event.thread]++).address) FAIL("a torn record");
  }
  CHECK(!next.empty());
}

TEST_CASE("a killed process leaves a trace that is readable") {
  Folder folder;
  const std::string path = folder.file("t");
  const int status = in_child([&] {
    TraceWriter writer;
    if (!writer.open(path.c_str(), {}).ok()) return 1;
    for (std::uint64_t i = 0; i < 50'000; ++i) writer.append(sample_event(i));
    raise(SIGKILL);
    return 2;
  });
  REQUIRE(WIFSIGNALED(status));
  std::uint64_t incomplete = 0;
  CHECK(read_all(path, &incomplete).size() == 50'000);
  CHECK(incomplete == 0);  // the unused rest of the file is no loss
}

TEST_CASE("a trace never writes over a file nor follows a link") {
  Folder folder;
  const std::string path = folder.write("t", "mine");
  std::filesystem::create_symlink(folder.file("elsewhere"), folder.file("t.1"));
  TraceWriter writer;
  REQUIRE(writer.open(path.c_str(), {}).ok());
  CHECK(writer.path() == path + ".2");
  CHECK(testing::read_file(path) == "mine");
  CHECK_FALSE(std::filesystem::exists(folder.file("elsewhere")));
  CHECK(writer.open(folder.file("again").c_str(), {}).code == EBUSY);
}

TEST_CASE("a trace that cannot be opened says why and leaves nothing") {
  Folder folder;
  TraceWriter writer;
  CHECK(writer.open(folder.file("absent/t").c_str(), {}).code == ENOENT);
  writer.append(sample_event(0));  // harmless
  CHECK(writer.open(std::string(PATH_MAX, 'x').c_str(), {}).code == ENAMETOOLONG);
}

TEST_CASE("a limit on the file's size ends the trace, not the program") {
  Folder folder;
  const std::string path = folder.file("t");
  const int status = in_child([&] {
    const rlimit limit{3 * MiB, 3 * MiB};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    TraceWriter writer;
    if (!writer.open(path.c_str(), {}, note_stop).ok()) return 2;
    for (std::uint64_t i = 0; i < 200'000; ++i) writer.append(sample_event(i));
    return stopped_by == EFBIG && stops == 1 ? 0 : 3;
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  const auto events = read_all(path);
  CHECK(events.size() > 49'000);  // what fitted is there
  CHECK(events.back().address == sample_event(events.size() - 1).address);
}

TEST_CASE("a descriptor that the program took away ends the trace, and its file stays whole") {
  Folder folder;
  const std::string path = folder.file("t");
  const int status = in_child([&] {
    TraceWriter writer;
    if (!writer.open(path.c_str(), {}, note_stop).ok()) return 1;
    struct stat ours {};
    if (stat(path.c_str(), &ours) != 0) return 2;
    const int other = open(folder.file("other").c_str(), O_RDWR | O_CREAT, 0600);
    for (int fd = 3; fd < 64; ++fd) {
      struct stat now {};
      if (fd != other && fstat(fd, &now) == 0 && now.st_ino == ours.st_ino) dup2(other, fd);
    }
    for (std::uint64_t i = 0; i < 100'000; ++i) writer.append(sample_event(i));
    return stopped_by == EBADF ? 0 : 3;
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(std::filesystem::file_size(folder.file("other")) == 0);
  CHECK(!read_all(path).empty());
}

TEST_CASE("a forked child leaves the parent's trace alone") {
  Folder folder;
  TraceWriter writer;
  REQUIRE(writer.open(folder.file("t").c_str(), {}).ok());
  writer.append(sample_event(0));
  const int status = in_child([&] {
    writer.abandon();
    for (std::uint64_t i = 0; i < 1000; ++i) writer.append(sample_event(i, 99));
    writer.close();
    return 0;
  });
  CHECK(status == 0);
  writer.append(sample_event(1));
  writer.close();
  const auto events = read_all(writer.path());
  REQUIRE(events.size() == 2);
  CHECK(events[1].address == sample_event(1).address);
}
