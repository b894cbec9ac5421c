#include "shim/log_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "core/record/own_file.hpp"

namespace fragshim::log {
namespace {

/// The signals by which a write that fails would kill the program.
sigset_t signals_of_writes() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

/// In one call, and without host memory.
void write_line(std::string_view prefix, std::string_view line) noexcept {
  const NoCancel no_cancel;
  const NoWriteSignals no_signals;
  char buffer[2048];
  prefix.copy(buffer, prefix.size());
  const std::size_t length =
      prefix.size() + line.copy(buffer + prefix.size(), sizeof buffer - 1 - prefix.size());
  buffer[length] = '\n';
  const int previous_error = errno;
  if (write(STDERR_FILENO, buffer, length + 1) < 0) {
    // Nobody is left to be told.
  }
  errno = previous_error;
}

}  // namespace

OpenedFile create_log_file(const std::string& path) {
  OpenedFile file;
  file.path.reserve(PATH_MAX);  // once there is a file nothing may throw
  char created[PATH_MAX];
  file.descriptor = create_own_file(path.c_str(), O_WRONLY | O_APPEND, created);
  if (file.descriptor >= 0) {
    file.path = created;
    return file;
  }
  char buffer[128];
  const char* const why = why_not_created(errno, buffer, sizeof buffer);
  return {-1, {}, "cannot create the log " + path + ": " + why + "; going on without it"};
}

void write_stderr(std::string_view line) noexcept { write_line({}, line); }

void say(std::string_view text) noexcept { write_line("fragshim: ", text); }

NoCancel::NoCancel() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_); }

NoCancel::~NoCancel() { pthread_setcancelstate(previous_, nullptr); }

NoWriteSignals::NoWriteSignals() noexcept {
  const sigset_t signals = signals_of_writes();
  sigpending(&pending_);
  pthread_sigmask(SIG_BLOCK, &signals, &previous_);
}

NoWriteSignals::~NoWriteSignals() {
  const int previous_error = errno;
  sigset_t ours = signals_of_writes();
  // What waited before this scope is the program's.
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    if (sigismember(&pending_, signal) == 1) sigdelset(&ours, signal);
  }
  const timespec at_once{};
  while (sigtimedwait(&ours, nullptr, &at_once) > 0) continue;
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  errno = previous_error;
}

}  // namespace fragshim::log
