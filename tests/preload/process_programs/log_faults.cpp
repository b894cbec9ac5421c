// A program at work through both doors while something spoils its log: `log_faults FAULT`. It ends
// at once where a call does not give what it gives without the fault; "served" is its last word.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/preload/driver_user.hpp"

using namespace driver_user;

namespace {

constexpr int descriptors = 64;

/// Longer than the interval of the log, and often enough for it to look at the clock.
void work() {
  for (int turn = 0; turn < 10; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (int i = 0; i < 64; ++i) use_both_doors(nullptr);
  }
}

void take_all_descriptors() {
  const rlimit limit{descriptors, descriptors};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::exit(5);
  while (dup(STDIN_FILENO) >= 0) continue;
}

/// What a program does that closes all it does not know, and opens files of its own.
void take_over_descriptors() {
  const int mine = open("mine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (int i = STDERR_FILENO + 1; i < descriptors; ++i) {
    std::error_code none;
    const auto file = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(i), none);
    if (file.filename() == "log" || file.filename() == "trace") dup2(mine, i);
  }
}

/// Standard error becomes a pipe that nobody reads.
void become_unheard() {
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) std::exit(5);
  close(ends[0]);
}

void limit_files() {
  const rlimit limit{4096, 4096};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) std::exit(5);
}

/// More than fits the first parts of a trace.
void work_long() {
  for (int i = 0; i < 15; ++i) work();
}

}  // namespace

int main(int count, char** arguments) {
  const std::string fault = count > 1 ? arguments[1] : "";
  if (fault == "unheard_from_the_start") become_unheard();
  begin();
  if (fault == "no_descriptors") take_all_descriptors();  // the driver needs some to begin with
  if (fault == "small_files") limit_files();
  work();
  if (fault == "descriptors_run_out") take_all_descriptors();
  if (fault == "descriptors_taken_over") take_over_descriptors();
  if (fault == "folder_removed") std::filesystem::remove_all("logs");
  if (fault == "unheard") become_unheard();
  if (fault == "long") work_long();
  work();
  std::puts("served");
  return 0;
}
