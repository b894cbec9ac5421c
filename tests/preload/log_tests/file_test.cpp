// The file under the log: how it is made, and that nothing that goes wrong with it gets out.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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

}  // namespace

TEST_CASE("a log that cannot be made says which and why", "[log]") {
  const TemporaryFolder folder;
  const OpenedFile file = create_log_file(folder / "gone/run.jsonl");
  CHECK(file.descriptor == -1);
  CHECK(file.problem == "cannot create the log " + (folder / "gone/run.jsonl") +
                            ": No such file or directory; going on without it");
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
  CHECK(written.size() == std::size_t{threads} * lines);
  for (const std::string& line : written) {
    const std::size_t expected = 100 + 50 * static_cast<std::size_t>(line[0] - 'a');
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

TEST_CASE("a descriptor that the program has closed gets no line, nor its next file", "[log]") {
  const TemporaryFolder folder;
  const OpenedFile file = create_log_file(folder / "run");
  LineLogger* const logger = logger_on(file.descriptor);
  const int other = open((folder / "other").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(dup2(other, file.descriptor) == file.descriptor);
  logger->write("line");
  CHECK(last_error == EBADF);
  CHECK(lines_of(folder / "other").empty());
  close(other);
  close(file.descriptor);
}

TEST_CASE("a signal of a write is taken away, one that waited before is not", "[log]") {
  const ChildResult result = in_child([] {
    int ends[2];
    if (pipe(ends) != 0) _exit(1);
    close(ends[0]);
    const auto write_unheard = [&] {
      const NoWriteSignals no_signals;
      if (write(ends[1], "x", 1) >= 0 || errno != EPIPE) _exit(2);
    };
    write_unheard();
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    raise(SIGPIPE);
    write_unheard();
    pthread_sigmask(SIG_UNBLOCK, &pipe_signal, nullptr);
    _exit(3);
  });
  CHECK(result.exit_status == 128 + SIGPIPE);
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
