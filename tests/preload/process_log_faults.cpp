// The log and the trace go wrong: the program above them is served as ever, and hears of it once.
// On the stand-in driver.
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/preload/process_run.hpp"

namespace fragshim::test {
namespace {

using Words = std::vector<std::string>;

/// The program under a fault, with a log and a trace and no summary; a shell command that starts it
/// as "$0" $1 may be given.
Outcome spoiled(const std::string& fault, Variables more = {},
                const std::string& command = "\"$0\" $1") {
  more.insert({{"LD_LIBRARY_PATH", standin_folder()},
               {"FRAGSHIM_LOG", "log"},
               {"FRAGSHIM_LOG_INTERVAL_MS", "1"},
               {"FRAGSHIM_TRACE", "trace"},
               {"FRAGSHIM_QUIET", "1"}});
  Outcome outcome =
      run_preloaded({"sh", "-c", command, probe("log_faults"), fault, FRAGSHIM_TOOL}, more);
  INFO(fault << ": " << outcome.errors);
  CHECK(outcome.code == 0);
  std::sort(outcome.files.begin(), outcome.files.end());
  return outcome;
}

/// The program, and what comes after it.
std::string and_then(const std::string& more) { return "\"$0\" $1 || exit; " + more; }

/// How many records of a type there are among lines that must all be records.
std::size_t records(const Words& lines, const std::string& type) {
  std::size_t found = 0;
  for (const std::string& line : lines) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    INFO(line);
    REQUIRE(record.is_object());
    found += record["type"] == type ? 1 : 0;
  }
  return found;
}

/// The lines behind "served".
Words after_served(const Outcome& outcome) {
  Words all = lines(outcome.output);
  const auto served = std::find(all.begin(), all.end(), "served");
  REQUIRE(served != all.end());
  return {served + 1, all.end()};
}

}  // namespace

// UBSan looks into memory through a descriptor.
TEST_CASE("no descriptor is left at the first allocation: no files, a line for each",
          "[unsanitized]") {
  if (standin_folder().empty()) return;
  const Outcome outcome = spoiled("no_descriptors");
  CHECK(outcome.output == "served\n");
  CHECK(outcome.errors ==
        "fragshim: cannot create the log log: Too many open files; going on without it\n"
        "fragshim: cannot create the trace trace: Too many open files; going on without it\n");
  CHECK(outcome.files.empty());
}

TEST_CASE("descriptors that run out later change nothing") {
  if (standin_folder().empty()) return;
  const Outcome outcome =
      spoiled("descriptors_run_out", {}, and_then("cat log; \"$2\" replay --json trace >replay"));
  CHECK(outcome.errors.empty());
  const Words log = after_served(outcome);
  CHECK(records(log, "sample") >= 2);
  CHECK(records(log, "exit") == 2);
  CHECK(outcome.files == Words{"log", "replay", "trace"});
}

TEST_CASE("descriptors that the program takes over are its own from then on") {
  if (standin_folder().empty()) return;
  const Outcome outcome = spoiled("descriptors_taken_over", {}, and_then("cat mine log"));
  CHECK(outcome.errors == "fragshim: cannot write the log: Bad file descriptor; it ends here\n");
  const Words log = after_served(outcome);
  CHECK(records(log, "start") == 1);
  CHECK(records(log, "exit") == 0);
}

TEST_CASE("neither file becomes a standard stream that the program has closed") {
  if (standin_folder().empty()) return;
  const Outcome outcome = spoiled(
      "", {{"FRAGSHIM_QUIET", "0"}},
      "\"$0\" <&- >&- 2>&- || exit; echo served; cat log; \"$2\" replay --json trace >replay");
  CHECK(records(after_served(outcome), "exit") == 2);  // and no summary among the records
  CHECK(outcome.files == Words{"log", "replay", "trace"});
}

TEST_CASE("nobody reads standard error: the program lives, and its log is whole") {
  if (standin_folder().empty()) return;
  for (const std::string fault : {"unheard_from_the_start", "unheard"}) {
    const Outcome outcome = spoiled(
        fault,
        {{"FRAGSHIM_VERBOSE", "1"}, {"FRAGSHIM_QUIET", "0"}, {"FRAGSHIM_CONF", "no_such_key:1"}},
        and_then("cat log"));
    CHECK(records(after_served(outcome), "exit") == 2);
  }
}

TEST_CASE("a limit on files ends the log with a whole line, even where standard error is one") {
  if (standin_folder().empty()) return;
  for (const std::string verbose : {"0", "1"}) {
    const Outcome outcome =
        spoiled("small_files", {{"FRAGSHIM_VERBOSE", verbose}}, and_then("cat log"));
    const Words log = after_served(outcome);
    CHECK(records(log, "start") == 1);
    CHECK(outcome.errors.size() <= 4096);
    if (verbose == "1") continue;
    CHECK(outcome.errors ==
          "fragshim: cannot create the trace trace: File too large; going on without it\n"
          "fragshim: cannot write the log: File too large; it ends here\n");
    CHECK(outcome.files == Words{"log"});
  }
}

TEST_CASE("the folder of log and trace goes in mid-run") {
  if (standin_folder().empty()) return;
  const Outcome outcome =
      spoiled("folder_removed", {{"FRAGSHIM_LOG", "logs/log"}, {"FRAGSHIM_TRACE", "logs/trace"}},
              "mkdir logs; \"$0\" $1");
  CHECK(outcome.output == "served\n");
  CHECK(outcome.errors.empty());
  CHECK(outcome.files.empty());
}

TEST_CASE("the disk fills up in mid-run: log and trace end, each with a line") {
  if (standin_folder().empty() || geteuid() != 0) return;
  const Outcome outcome =
      spoiled("long", {{"FRAGSHIM_LOG", "disk/log"}, {"FRAGSHIM_TRACE", "disk/trace"}},
              "mkdir disk; mount -t tmpfs -o size=1040k tmpfs disk || { echo served; exit 0; }; "
              "\"$0\" $1; code=$?; \"$2\" replay --json disk/trace; umount disk; exit $code");
  const Words said = lines(outcome.errors);
  if (said.size() == 1 && said[0].rfind("mount", 0) == 0) return;  // root of a container
  CHECK(said.size() == 2);
  for (const std::string& line : said) CHECK(line.find("No space left") != std::string::npos);
  CHECK(after_served(outcome).size() == 1);  // what the replay says
}

TEST_CASE("in a shared folder nothing of others is opened, followed or waited for") {
  if (standin_folder().empty()) return;
  const std::string folder =
      "umask 0; mkdir shared; chmod 1777 shared; cd shared; echo theirs >log; "
      "chown 65534 log 2>/dev/null; mkdir folder; mkfifo pipe; echo mine >file; ln -s file link; "
      "ln -s nothing dangling; ln -s /nowhere log.1; cd ..; \"$0\" $1; code=$?; "
      "cat shared/log shared/file; ls -A shared/folder; "
      "cd shared; echo *; exit $code";
  struct Case {
    const char* name;
    const char* problem;  // null: there is a numbered file beside it
  };
  for (const auto& [name, problem] :
       {Case{"log", nullptr}, Case{"folder", "it is a directory"},
        Case{"pipe", "it is no regular file"}, Case{"link", "it is a link"},
        Case{"dangling", "it is a link"}}) {
    for (const std::string kind : {"log", "trace"}) {
      const bool log = kind == "log";
      const std::string path = std::string("shared/") + name;
      const Outcome outcome = spoiled("",
                                      {{"WHERE", name},
                                       {"FRAGSHIM_LOG", log ? "shared/%q{WHERE}" : "off"},
                                       {"FRAGSHIM_TRACE", log ? "off" : "shared/%q{WHERE}"}},
                                      folder);
      INFO(kind << " " << path);
      const std::string created = problem ? "" : " log.2";
      CHECK(after_served(outcome) ==
            Words{"theirs", "mine", "dangling file folder link log log.1" + created + " pipe"});
      const std::string complaint = "fragshim: cannot create the " + kind + " " + path + ": ";
      CHECK((outcome.errors.find(complaint) != std::string::npos) == (problem != nullptr));
      if (problem) CHECK(outcome.errors.find(complaint + problem) != std::string::npos);
    }
  }
}

}  // namespace fragshim::test
