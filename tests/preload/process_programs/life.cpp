// The shim's own view of a process's life: `life CASE` prints what happens, one word a line. It is
// linked with shim/process.cpp and shim/torch.cpp, and with a log that only says when it is called.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "shim/log.hpp"
#include "shim/process.hpp"
#include "shim/torch.hpp"

namespace {

/// Unbuffered, so that a child's lines come once and an _exit loses none.
void say(const std::string& word) {
  const std::string line = word + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(3);
}

void say_standing() { say(fragshim::passing_through() ? "aside" : "between"); }

}  // namespace

namespace fragshim::log {
void finish() noexcept { say("finish"); }
void after_fork_in_child() noexcept { say("child"); }
}  // namespace fragshim::log

namespace {

using fragshim::settings;

/// Forks; the child does `action` and exits, the parent waits for it.
template <typename Action>
void in_child(Action action) {
  const pid_t child = fork();
  if (child == 0) {
    action();
    std::exit(0);
  }
  waitpid(child, nullptr, 0);
}

void fork_before_use() {
  in_child([] {
    settings();
    say_standing();
  });
  settings();
  say_standing();
}

void fork_after_use() {
  settings();
  in_child([] {
    say_standing();
    in_child(say_standing);
  });
  say_standing();
}

/// A fork while another thread is in its first use: the child stands aside, or is as new.
void fork_at_first_use() {
  for (int i = 0; i < 20; ++i) {
    in_child([] {
      std::thread user([] { settings(); });
      const pid_t child = fork();
      if (child == 0) {
        settings();
        _exit(0);
      }
      user.join();
      int status = -1;
      waitpid(child, &status, 0);
      if (status != 0) say("stuck");
      _exit(0);
    });
  }
}

void threads() {
  std::vector<const fragshim::Settings*> seen(8);
  std::vector<std::thread> users;
  for (auto& place : seen) users.emplace_back([&place] { place = &settings(); });
  for (auto& user : users) user.join();
  for (const auto* place : seen) {
    if (place != seen[0]) say("different");
  }
}

struct UsesSettingsLate {
  ~UsesSettingsLate() { say(settings().log); }
};

void destructors() {
  static UsesSettingsLate until_exit;
  static thread_local UsesSettingsLate until_thread_exit;
  (void)&until_exit;
  (void)&until_thread_exit;
  settings();
  std::atexit([] { say(settings().log); });
}

void overridden() {
  const auto say_it = [] { say(fragshim::overridden_after_start() ? "overridden" : "handed"); };
  say_it();
  for (const char* variable : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const char* const text = std::getenv(variable);
    const std::string handed = text ? text : "";
    setenv(variable, "expandable_segments:True", 1);
    say_it();
    unsetenv(variable);
    say_it();
    setenv(variable, handed.c_str(), 1);
    say_it();
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  if (name == "exit") settings();
  if (name == "quick_exit") settings(), std::quick_exit(0);
  if (name == "unused_quick_exit") std::quick_exit(0);
  if (name == "_exit") settings(), _exit(0);
  if (name == "standing") say_standing();
  if (name == "observing") say(fragshim::observing() ? "observing" : "serving");
  if (name == "fork_before_use") fork_before_use();
  if (name == "fork_after_use") fork_after_use();
  if (name == "fork_at_first_use") fork_at_first_use();
  if (name == "threads") threads();
  if (name == "destructors") destructors();
  if (name == "overridden") overridden();
  return 0;
}
