// The wall clock is set back and forth under the log: its stamps follow, its intervals do not.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/preload/log_tests/log_fixture.hpp"

using namespace fragshim;
using namespace fragshim::test;
using nlohmann::json;

namespace {

constexpr std::int64_t year = 31'536'000;
constexpr std::int64_t jumps[] = {10 * year, -10 * year, 0};
constexpr std::uint32_t long_interval_ms = 1'000'000;

std::atomic<std::int64_t> set_forward{0};  // by how many seconds

std::ptrdiff_t count(const std::string& path, const std::string& type) {
  const Types types = types_of(path);
  return std::count(types.begin(), types.end(), type);
}

void fail_often(int times) {
  for (int i = 0; i < times; ++i) log::failure({});
}

}  // namespace

// In front of the C library's, for all that is linked to this program.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += set_forward;
  return static_cast<int>(result);
}

TEST_CASE("the wall clock jumps: samples go on", "[log]") {
  const TemporaryFolder folder;
  in_child([&] {
    begin_with(folder / "run");
    FixedSource source;
    log::set_source(&source);
    log::start(fixed_device());
    for (const std::int64_t jump : jumps) {
      set_forward = jump;
      wait_for_interval();
      log::sample_if_due();
    }
  });
  CHECK(count(folder / "run", "sample") == 2 * std::ssize(jumps));  // of two heaps
}

TEST_CASE("the wall clock jumps: no sample comes early", "[log]") {
  const TemporaryFolder folder;
  in_child([&] {
    begin_with(folder / "run");
    mutable_settings().log_interval_ms = long_interval_ms;
    FixedSource source;
    log::set_source(&source);
    log::start(fixed_device());
    for (const std::int64_t jump : jumps) {
      set_forward = jump;
      for (int i = 0; i < 100; ++i) log::sample_if_due();
    }
  });
  CHECK(count(folder / "run", "sample") == 0);
}

TEST_CASE("the wall clock jumps: failures neither fall silent nor flood", "[log]") {
  const TemporaryFolder folder;
  const auto failures = [&](std::uint32_t interval_ms, const std::string& name) {
    in_child([&] {
      begin_with(folder / name);
      mutable_settings().log_interval_ms = interval_ms;
      log::start(fixed_device());
      fail_often(1000);
      for (const std::int64_t jump : jumps) {
        set_forward = jump;
        if (interval_ms == 1) wait_for_interval();
        fail_often(1);
      }
    });
    return count(folder / name, "oom");
  };
  CHECK(failures(1, "short") == 1000 + std::ssize(jumps));
  CHECK(failures(long_interval_ms, "long") == 1000);
}

TEST_CASE("the wall clock jumps: stamps follow it, the time that a run took does not", "[log]") {
  const TemporaryFolder folder;
  const ChildResult result = in_child([&] {
    begin_with(folder / "run");
    FixedSource source;
    source.synchronous.state.allocations = 1;
    log::set_source(&source);
    log::start(fixed_device());
    set_forward = -10 * year;
    log::finish();
  });
  const auto lines = lines_of(folder / "run");
  REQUIRE(lines.size() == 3);
  const json start = json::parse(lines[0]);
  const json exit = json::parse(lines[1]);
  CHECK(start["time"].get<double>() - exit["time"].get<double>() > 9 * year);
  CHECK(exit["seconds"].get<double>() >= 0);
  CHECK(exit["seconds"].get<double>() < 60);
  CHECK(result.standard_error.find(" 0.0 s") != std::string::npos);
}
