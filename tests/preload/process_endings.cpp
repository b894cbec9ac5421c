// Programs that end while they hold device memory, in every way there is. On the stand-in driver.
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

using Words = std::vector<std::string>;

/// What the program said. Whatever its end, each line of its log is whole.
Words ending(const std::string& name, int code) {
  const Outcome outcome = run_preloaded(
      {"sh", "-c", "\"$0\" $1; code=$?; cat log >&2; exit $code", probe("endings"), name},
      {{"LD_LIBRARY_PATH", standin_folder()}, {"FRAGSHIM_LOG", "log"}, {"FRAGSHIM_QUIET", "1"}});
  INFO(name << ": " << outcome.errors);
  CHECK(outcome.code == code);
  std::size_t records = 0;
  for (const std::string& line : lines(outcome.errors)) {
    if (line.empty() || line[0] != '{') continue;
    CHECK(nlohmann::json::accept(line));
    ++records;
  }
  CHECK(records >= 1);
  return lines(outcome.output);
}

}  // namespace

TEST_CASE("blocks may be freed from destructors of threads and of the program, and at exit") {
  if (standin_folder().empty()) return;
  // Two of the thread's, "end", two of main's own thread, the one of atexit, two static ones.
  CHECK(ending("destructors", 0) == Words{"0", "0", "end", "0", "0", "0", "0", "0"});
}

TEST_CASE("a program may end while its threads allocate") {
  if (standin_folder().empty()) return;
  for (int i = 0; i < 5; ++i) {
    CHECK(ending("exit_elsewhere", 0).empty());
    CHECK(ending("return_among_threads", 0) == Words{"end"});
    CHECK(ending("quick_exit", 0).empty());
    CHECK(ending("_exit", 0).empty());
  }
  CHECK(ending("uncaught", 128 + SIGABRT).empty());
}

TEST_CASE("a child forked while other threads are in the allocator does not hang", "[fork]") {
  if (standin_folder().empty()) return;
  CHECK(ending("fork", 0) == Words{"end"});
}

TEST_CASE("what a thread leaves behind lives on, and anybody may free it") {
  if (standin_folder().empty()) return;
  CHECK(ending("thread_gone", 0) == Words{"end"});
}

TEST_CASE("a million blocks, ten thousand streams: the shim's own memory stays as it is",
          "[unsanitized]") {
  if (standin_folder().empty()) return;
  CHECK(ending("million", 0) == Words{"flat", "end"});
  CHECK(ending("streams", 0) == Words{"flat", "end"});
}

TEST_CASE("hundreds of threads at both doors") {
  if (standin_folder().empty()) return;
  CHECK(ending("crowd", 0) == Words{"done", "end"});
}

TEST_CASE("killed at any moment, a program leaves a log and a trace that can be read") {
  if (standin_folder().empty()) return;
  for (int moment = 1; moment <= 20; ++moment) {
    // The moment counts from where there is something to lose.
    const std::string script =
        "\"$0\" forever & until [ -s log ] && [ -s trace ]; do sleep 0.005; done; "
        "sleep 0.$(printf %03d " +
        std::to_string(10 * moment) +
        "); kill -9 $!; wait $!; cat log; echo .; \"$1\" report log >report && "
        "\"$1\" replay --json trace";
    const Outcome outcome = run_preloaded({"sh", "-c", script, probe("endings"), FRAGSHIM_TOOL},
                                          {{"LD_LIBRARY_PATH", standin_folder()},
                                           {"FRAGSHIM_LOG", "log"},
                                           {"FRAGSHIM_TRACE", "trace"},
                                           {"FRAGSHIM_LOG_INTERVAL_MS", "10"},
                                           {"FRAGSHIM_QUIET", "1"}});
    INFO("after " << 10 * moment << " ms: " << outcome.errors);
    CHECK(outcome.code == 0);
    std::size_t records = 0;
    std::size_t ends = 0;
    for (const std::string& line : lines(outcome.output)) {
      // A kill may end a write at the border of a page: the last line can be cut, no other.
      if (line.ends_with('.')) {
        ++ends;
        continue;
      }
      CHECK(nlohmann::json::accept(line));
      ++records;
    }
    CHECK(ends == 1);
    CHECK(records >= 2);  // the log's start, and what the replay says
  }
}

TEST_CASE("a request of no possible size is out of memory, and no more") {
  if (standin_folder().empty()) return;
  Words words(8, "2");
  words.emplace_back("end");
  CHECK(ending("huge", 0) == words);
}

}  // namespace fragshim::test
