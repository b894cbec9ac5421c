// Programs that inherit LD_PRELOAD and never use CUDA: nothing about them changes.
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

/// How long it takes to start `true`, in microseconds.
double start_up_us(const Variables& variables) {
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(run({"true"}, variables).code == 0);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  return taken.count();
}

}  // namespace

TEST_CASE("a program without CUDA does what it does alone") {
  const auto command = GENERATE(values<std::vector<std::string>>({
      {"true"},
      {"ls", "/"},
      {"bash", "-c", "true"},
      {"bash", "-c", "ls / | sort | tail -2; (echo child) & wait; exec echo done"},
      {"python3", "-c", "pass"},
      {"python3", "-c", "import subprocess; subprocess.run(['ls', '/'], check=True)"},
      {"python3", "-c", "import ctypes, ssl; print(ctypes.CDLL(None).getpid() > 0)"},
  }));
  INFO(command.back());
  const Outcome alone = run(command);
  const Outcome preloaded = run_preloaded(command);
  CHECK(preloaded.code == 0);
  CHECK(preloaded.errors == "");
  CHECK(preloaded.files.empty());
  CHECK(preloaded.output == alone.output);
}

TEST_CASE("an environment of LD_PRELOAD alone") {
  const Outcome outcome =
      run({"env", "-i", "LD_PRELOAD=" + preload_list(), "/bin/sh", "-c", "exit 3"});
  CHECK(outcome.code == 3);
  CHECK(outcome.output + outcome.errors == "");
}

TEST_CASE("a setuid program ignores the library, as the loader's rule is", "[unsanitized]") {
  // Only root can make one that is not its user's own; setpriv comes with every Debian and Ubuntu.
  if (geteuid() != 0 || run({"sh", "-c", "command -v setpriv"}).code != 0) {
    WARN("left out: it takes root and setpriv");
    return;
  }
  const std::string script =
      "umask 022; d=$(mktemp -d) && chmod 755 $d && cp $(command -v cat) $d/cat && cp $0 "
      "$d/lib.so\n"
      "count() { LD_PRELOAD=$d/lib.so setpriv --reuid 65534 --clear-groups "
      "$d/cat /proc/self/maps | grep -c lib.so; }\n"
      "chmod 755 $d/cat; [ $(count) -gt 0 ] && echo loaded\n"
      "chmod 4755 $d/cat; [ $(count) -eq 0 ] && echo ignored\n"
      "rm -r $d";
  const Outcome outcome = run({"sh", "-c", script, library()});
  INFO(outcome.errors);
  CHECK(lines(outcome.output) == std::vector<std::string>{"loaded", "ignored"});
}

TEST_CASE("settings that are wrong are not spoken of where CUDA is not used") {
  const Outcome outcome = run_preloaded(
      {"true"},
      {{"FRAGSHIM_MODE", "allcoate"}, {"FRAGSHIM_CONF", "max_split:x"}, {"FRAGSHIM_LOG", "/"}});
  CHECK(outcome.code == 0);
  CHECK(outcome.output + outcome.errors == "");
}

TEST_CASE("what the library costs at start", "[unsanitized]") {
  double alone = 1e9;
  double preloaded = 1e9;
  for (int i = 0; i < 50; ++i) {  // in turn, the best of each: whatever else runs disturbs both
    alone = std::min(alone, start_up_us({}));
    preloaded = std::min(preloaded, start_up_us({{"LD_PRELOAD", preload_list()}}));
  }
  WARN("starting `true` takes " << alone << " us, preloaded " << preloaded << " us");
  SUCCEED();
}

}  // namespace fragshim::test
