// How far a long command has come, on a terminal.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

namespace fragshim::fragtool {

/// Says on a terminal how far a command has come, once it has taken a second.
class Progress {
 public:
  /// "SUBJECT: 123 UNITS".
  Progress(std::string subject, std::string units)
      : subject_(std::move(subject)), units_(std::move(units)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::cerr << "\r\033[K";
  }

  void operator()(std::uint64_t count) {
    const auto now = Clock::now();
    if (!terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    shown_ = true;
    std::cerr << "\r\033[K" << subject_ << ": " << count << " " << units_ << std::flush;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string subject_;
  std::string units_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
};

}  // namespace fragshim::fragtool
