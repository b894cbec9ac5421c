// The log over the life of a process, each case in a process of its own.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "shim/trace.hpp"
#include "tests/catch.hpp"
#include "tests/preload/log_tests/log_fixture.hpp"

using namespace fragshim;
using namespace fragshim::test;
using nlohmann::json;

namespace {

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("a process that never used CUDA leaves and says nothing", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "run");
    FixedSource source;
    log::set_source(&source);
    for (int i = 0; i < 1000; ++i) log::tick();
    log::finish();
  });
  CHECK(result.exit_status == 0);
  CHECK(result.standard_error.empty());
  CHECK(folder.names().empty());
}

TEST_CASE("start, samples, exit, and the summary", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "run-%p");
    FixedSource source;
    source.stream_ordered.state.allocations = 4;
    source.stream_ordered.state.reserved_peak = 4 * GiB;
    log::set_source(&source);
    log::start(fixed_device());
    log::start(fixed_device());
    log::tick();  // too few operations to look at the clock
    wait_for_interval();
    // Exactly one look at the clock: a second one could find the next interval over, too.
    for (std::uint32_t i = 0; i < log::detail::operations_per_look; ++i) log::tick();
    log::finish();
    log::finish();
    log::sample_if_due();
  });
  CHECK(result.exit_status == 0);
  REQUIRE(folder.names().size() == 1);
  const std::string path = folder / folder.names()[0];
  CHECK(types_of(path) == Types{"start", "sample", "sample", "exit", "exit"});
  const json sample = json::parse(lines_of(path)[1]);
  CHECK(sample["heap"] == "synchronous");
  CHECK(sample["card_free"] == 70 * GiB);
  CHECK(sample["device_time"] == 11);
  CHECK(sample["managed"] == 5);
  CHECK(count_lines(result.standard_error) <= 12);
  CHECK(result.standard_error.find("4.00 GiB reserved") != std::string::npos);
  CHECK(result.standard_error.find("fragrun report " + path) != std::string::npos);
}

TEST_CASE("quiet means no summary, off no file", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with("");
    mutable_settings().quiet = true;
    log::start(fixed_device());
    log::finish();
  });
  CHECK(result.standard_error.empty());
  CHECK(folder.names().empty());
}

TEST_CASE("a killed process leaves what it had", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "run");
    log::start(fixed_device());
    log::retry({0, log::HeapKind::synchronous, 0, 1, 2});
    raise(SIGKILL);
  });
  CHECK(result.exit_status == 128 + SIGKILL);
  CHECK(types_of(folder / "run") == Types{"start", "retry"});
}

TEST_CASE("warnings come once, those before the log opens too", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "run");
    mutable_settings().quiet = true;
    log::warning("early", "said early");
    log::start(fixed_device());
    log::warning("early", "said early");
    log::warning("late", "said late");
    log::finish();
  });
  CHECK(result.standard_error == "fragshim: said early\nfragshim: said late\n");
  CHECK(types_of(folder / "run") == Types{"start", "warning", "warning"});
}

TEST_CASE("a log that cannot be made is told once, and the program goes on", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "gone/run");
    mutable_settings().quiet = true;
    FixedSource source;
    log::set_source(&source);
    log::start(fixed_device());
    log::start({1, "another", "", GiB, 13000});
    wait_for_interval();
    log::sample_if_due();
    log::trim({});
    log::finish();
  });
  CHECK(result.exit_status == 0);
  CHECK(count_lines(result.standard_error) == 1);
  CHECK(result.standard_error.find("cannot create the log") != std::string::npos);
}

TEST_CASE("failures are classified, counted and kept from flooding the log", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "run");
    mutable_settings().log_interval_ms = 1000000;
    log::start(fixed_device());
    log::FailureReport report;
    report.evidence.request = 2 * GiB;
    report.evidence.limit = 1 * GiB;
    report.evidence.device_total = report.evidence.device_free = 80 * GiB;
    for (int i = 0; i < 1500; ++i) log::failure(report);
    log::finish();
  });
  const auto lines = lines_of(folder / "run");
  const Types types = types_of(folder / "run");
  CHECK(std::count(types.begin(), types.end(), "oom") == 1000);
  CHECK(types.size() == 1002);  // and start and exit
  CHECK(json::parse(lines[1])["class"] == "limit");
  CHECK(result.standard_error.find("out of memory 1500 times: 1500 limit") != std::string::npos);
}

TEST_CASE("what a destroyed context had counts in the exit record", "[log]") {
  const TemporaryFolder folder;
  in_child([&] {
    begin_with(folder / "run");
    FixedSource source;
    log::set_source(&source);
    log::start(fixed_device());
    FixedHeap gone;
    gone.state.reserved_peak = 3 * GiB;
    gone.state.allocations = 5;
    log::heap_closing({0, log::HeapKind::synchronous, &gone, 100});
    source.synchronous.state.reserved_peak = 1 * GiB;
    source.synchronous.state.allocations = 2;
    log::finish();
  });
  CHECK(types_of(folder / "run") == Types{"start", "sample", "exit", "exit"});
  const json exit = json::parse(lines_of(folder / "run")[2]);
  CHECK(exit["heap"] == "synchronous");
  CHECK(exit["reserved_peak"] == 3 * GiB);
  CHECK(exit["allocations"] == 7);
  CHECK(exit["device_time"] == 111);
}

TEST_CASE("a forked child has a log of its own", "[log]") {
  const TemporaryFolder folder;
  in_child([&] {
    begin_with(folder / "run");
    mutable_settings().trace = folder / "trace";
    log::start(fixed_device());
    const pid_t child = fork();
    if (child == 0) {
      log::after_fork_in_child();
      trace_allocate(log::HeapKind::synchronous, 1, 2, 3);
      log::start(fixed_device());
      log::finish();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    log::finish();
  });
  CHECK(folder.names() == Types{"run", "run.1", "trace", "trace.1"});
  CHECK(types_of(folder / "run") == Types{"start"});
  CHECK(types_of(folder / "run.1") == Types{"start"});
}

TEST_CASE("threads may start, sample, warn and finish at once", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "run");
    FixedSource source;
    log::set_source(&source);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        log::start(fixed_device());
        for (int i = 0; i < 2000; ++i) log::tick();
        log::warning("same", "the same");
        log::retry({0, log::HeapKind::synchronous, 0, 1, 2});
        if (t == 0) log::finish();
      });
    }
    for (std::thread& thread : threads) thread.join();
    log::finish();
  });
  CHECK(result.exit_status == 0);
  const Types types = types_of(folder / "run");
  CHECK(std::count(types.begin(), types.end(), "start") == 1);
  CHECK(std::count(types.begin(), types.end(), "exit") == 2);
  CHECK(std::count(types.begin(), types.end(), "warning") == 1);
}
