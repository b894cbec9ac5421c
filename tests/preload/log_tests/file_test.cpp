// The file under the log: how it is made, and that nothing that goes wrong with it gets out.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <thread>

#include "shim/log_file.hpp"
#include "tests/catch.hpp"
#include "tests/preload/log_tests/log_fixture.hpp"

using namespace fragshim::log;
using namespace fragshim::test;

namespace {

std::atomic<int> errors{0};
std::atomic<int> last_error{0};
void count_error(int error) noexcept {
  ++errors;
  last_error = error;
}

LineLogger* logger_on(int descriptor) {
  errors = last_error = 0;
  LineLogger* const logger = LineLogger::create(descriptor, &count_error);
  REQUIRE(logger);
  return logger;
}

std::string refusal_of(const std::string& path) {
  const OpenedFile file = create_log_file(path);
  CHECK(file.descriptor == -1);
  return file.problem;
}

}  // namespace

TEST_CASE("a log is a new file of the user's alone", "[log]") {
  const TemporaryFolder folder;
  const OpenedFile first = create_log_file(folder / "run.jsonl");
  REQUIRE(first.descriptor >= 0);
  CHECK(first.path == folder / "run.jsonl");
  struct stat status {};
  REQUIRE(fstat(first.descriptor, &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK((fcntl(first.descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  const OpenedFile second = create_log_file(folder / "run.jsonl");
  const OpenedFile third = create_log_file(folder / "run.jsonl");
  CHECK(second.path == folder / "run.jsonl.1");
  CHECK(third.path == folder / "run.jsonl.2");
  for (const OpenedFile& file : {first, second, third}) close(file.descriptor);
}

TEST_CASE("what is no place for a log is refused with the reason", "[log]") {
  const TemporaryFolder folder;
  REQUIRE(mkdir((folder / "directory").c_str(), 0700) == 0);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::ofstream(folder / "secret") << "keep";
  REQUIRE(symlink((folder / "secret").c_str(), (folder / "link").c_str()) == 0);
  CHECK(refusal_of(folder / "directory").find("directory") != std::string::npos);
  CHECK(refusal_of(folder / "pipe").find("no regular file") != std::string::npos);
  CHECK(refusal_of(folder / "link").find("link") != std::string::npos);
  CHECK(refusal_of(folder / "gone/run.jsonl").find("No such file") != std::string::npos);
  CHECK(refusal_of("/dev/null").find("no regular file") != std::string::npos);
  CHECK(lines_of(folder / "secret") == std::vector<std::string>{"keep"});
  CHECK(folder.names() == std::vector<std::string>{"directory", "link", "pipe", "secret"});
}

TEST_CASE("lines of many threads stay whole", "[log]") {
  const TemporaryFolder folder;
  const OpenedFile file = create_log_file(folder / "run");
  LineLogger* const logger = logger_on(file.descriptor);
  constexpr int threads = 4;
  constexpr int lines = 500;
  std::vector<std::thread> writers;
  for (int t = 0; t < threads; ++t) {
    writers.emplace_back([logger, t] {
      const std::string line(static_cast<std::size_t>(100 + 50 * t), static_cast<char>('a' + t));
      for (int i = 0; i < lines; ++i) logger->write(line);
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto written = lines_of(folder / "run");
  CHECK(written.size() == threads * lines);
  for (const std::string& line : written) {
    const auto expected = static_cast<std::size_t>(100 + 50 * (line[0] - 'a'));
    if (line != std::string(expected, line[0])) FAIL("a torn line: " << line);
  }
  CHECK(errors == 0);
}

TEST_CASE("braces in a line are no format", "[log]") {
  const TemporaryFolder folder;
  LineLogger* const logger = logger_on(create_log_file(folder / "run").descriptor);
  logger->write(R"({"a":{},"b":"{0}{}"})");
  CHECK(lines_of(folder / "run") == std::vector<std::string>{R"({"a":{},"b":"{0}{}"})"});
}

TEST_CASE("a full disk is told once", "[log]") {
  LineLogger* const logger = logger_on(open("/dev/full", O_WRONLY | O_CLOEXEC));
  for (int i = 0; i < 3; ++i) logger->write("line");
  CHECK(errors == 1);
  CHECK(last_error == ENOSPC);
}

TEST_CASE("a limit on file sizes raises no signal", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    rlimit limit{64, 64};
    setrlimit(RLIMIT_FSIZE, &limit);
    LineLogger* const logger = logger_on(create_log_file(folder / "run").descriptor);
    for (int i = 0; i < 20; ++i) logger->write("ten bytes");
    _exit(errors == 1 && last_error == EFBIG ? 0 : 1);
  });
  CHECK(result.exit_status == 0);
  CHECK(lines_of(folder / "run").size() == 6);
}
