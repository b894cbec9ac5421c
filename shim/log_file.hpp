// Where the log's lines go: a file of our own, written through spdlog, one write(2) a line.
#pragma once

#include <signal.h>

#include <string>
#include <string_view>

namespace fragshim::log {

/// The file that could not be made, and why, in one line; or its descriptor and name.
struct OpenedFile {
  int descriptor = -1;
  std::string path;     // as created
  std::string problem;  // what to tell the user; empty: it is open
};

/// Creates `path`, or a numbered one beside it, for appending: one process, one log. Refuses links,
/// directories, devices and the like (core/record/own_file.hpp).
OpenedFile create_log_file(const std::string& path);

/// A logger of spdlog's on one descriptor. Never throws; the first error is told once and ends it.
/// Created once and never destroyed: the program's own last destructors may still log.
class LineLogger {
 public:
  /// Called at the first failed write, with errno's value. Must not throw.
  using ErrorCallback = void (*)(int error) noexcept;

  /// Takes the descriptor over; null where there is no memory.
  static LineLogger* create(int descriptor, ErrorCallback on_error) noexcept;

  LineLogger(const LineLogger&) = delete;
  LineLogger& operator=(const LineLogger&) = delete;
  virtual ~LineLogger() = default;

  /// Appends the line and a line break, at once. Any number of threads may.
  virtual void write(std::string_view line) noexcept = 0;

 protected:
  LineLogger() = default;
};

/// Writes one line to stderr at once, whatever the program has done to its streams.
void write_stderr(std::string_view line) noexcept;
/// The same behind "fragshim: ".
void say(std::string_view text) noexcept;

/// No thread is cancelled within this scope: pthread_cancel unwinds through the calls that write,
/// and our functions let nothing pass.
class NoCancel {
 public:
  NoCancel() noexcept;
  ~NoCancel();
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int previous_ = 0;
};

/// Within this scope a write of this thread to a pipe that nobody reads, or beyond the limit on the
/// sizes of files, fails and no more: its signal, which would kill the program, is taken away.
class NoWriteSignals {
 public:
  NoWriteSignals() noexcept;
  ~NoWriteSignals();
  NoWriteSignals(const NoWriteSignals&) = delete;
  NoWriteSignals& operator=(const NoWriteSignals&) = delete;

 private:
  sigset_t previous_;
  sigset_t pending_;
};

}  // namespace fragshim::log
