// The one translation unit that knows spdlog, header-only: its symbols must stay in here, and the
// library must need neither libspdlog nor libfmt. No registry, no threads, no formatter: a record
// is a whole line already.
#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY
#endif
#define SPDLOG_NO_THREAD_ID

#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>

#include "core/record/own_file.hpp"
#include "shim/log_file.hpp"

namespace fragshim::log {
namespace {

class DescriptorSink final : public spdlog::sinks::sink {
 public:
  DescriptorSink(int descriptor, LineLogger::ErrorCallback on_error)
      : descriptor_(descriptor), file_(descriptor), on_error_(on_error) {}

  void log(const spdlog::details::log_msg& message) override {
    if (failed_.load(std::memory_order_relaxed)) return;
    const int error = append(message.payload.data(), message.payload.size());
    if (error != 0 && !failed_.exchange(true)) on_error_(error);
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  /// One write where all goes well: O_APPEND keeps the lines of several threads apart.
  int append(const char* data, std::size_t size) const {
    char line_break = '\n';
    iovec parts[2] = {{const_cast<char*>(data), size}, {&line_break, 1}};
    off_t length = 0;
    if (!file_.holds(descriptor_, &length)) return EBADF;
    if (exceeds_size_limit(static_cast<rlim_t>(length) + size + 1)) return EFBIG;
    const NoWriteSignals no_signals;  // another thread's line may reach the limit first
    ssize_t written;
    do {
      written = writev(descriptor_, parts, 2);
    } while (written < 0 && errno == EINTR);
    if (written < 0) return errno;
    return static_cast<std::size_t>(written) == size + 1 ? 0 : ENOSPC;  // cut short: no room left
  }

  /// Asked beforehand, so that the last line is whole.
  static bool exceeds_size_limit(rlim_t length) {
    rlimit limit{};
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && length > limit.rlim_cur;
  }

  const int descriptor_;
  const FileIdentity file_;
  const LineLogger::ErrorCallback on_error_;
  std::atomic<bool> failed_{false};
};

class SpdlogLineLogger final : public LineLogger {
 public:
  SpdlogLineLogger(int descriptor, ErrorCallback on_error)
      : logger_("fragshim", std::make_shared<DescriptorSink>(descriptor, on_error)) {
    logger_.set_error_handler([](const std::string&) {});  // ours tells what there is to tell
  }

  void write(std::string_view line) noexcept override {
    const NoCancel no_cancel;
    const int previous_error = errno;
    try {
      logger_.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
    } catch (...) {
      // A line is lost, nothing more.
    }
    errno = previous_error;
  }

 private:
  spdlog::logger logger_;
};

}  // namespace

LineLogger* LineLogger::create(int descriptor, ErrorCallback on_error) noexcept {
  try {
    return new SpdlogLineLogger(descriptor, on_error);
  } catch (...) {
    close(descriptor);
    return nullptr;
  }
}

}  // namespace fragshim::log
