// Where the log's lines go: a file of our own, written through spdlog, one write(2) a line.
#pragma once

#include <string>
#include <string_view>

namespace fragshim::log {

/// The file that could not be made, and why, in one line; or its descriptor and name.
struct OpenedFile {
  int descriptor = -1;
  std::string path;     // as created
  std::string problem;  // what to tell the user; empty: it is open
};

/// Creates `path` (mode 0600, close-on-exec) for appending. Where it exists as a file, `path`.1,
/// `path`.2 … are tried: one process, one log. Never follows a link, opens nothing that exists, and
/// refuses directories, devices and the like.
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

}  // namespace fragshim::log
