#include "shim/log.hpp"

#include <cerrno>
#include <ctime>
#include <limits>
#include <new>

#include "shim/log_file.hpp"
#include "shim/log_session.hpp"
#include "shim/process.hpp"
#include "shim/torch.hpp"
#include "shim/trace.hpp"

namespace fragshim::log {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// All constant-initialised: calls may come before our constructors have run, and after the last
// destructor. A session is never freed.
constinit std::atomic<Session*> current{nullptr};
constinit std::atomic<HeapSource*> heaps{nullptr};
constinit std::atomic<std::int64_t> next_sample{never};

std::int64_t coarse_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Session* session() noexcept {
  Session* existing = current.load(std::memory_order_acquire);
  if (existing) return existing;
  Session* const made = new (std::nothrow) Session;
  if (!made || current.compare_exchange_strong(existing, made)) return made;
  delete made;
  return existing;
}

/// Runs what may throw or be cancelled; errno is the program's. False: there was no host memory; a
/// record is lost, the program goes on.
template <typename Function>
bool guarded(Function&& function) noexcept {
  const NoCancel no_cancel;
  const int previous_error = errno;
  bool done = false;
  try {
    if (Session* const log = session()) {
      function(*log);
      done = true;
    }
  } catch (...) {
    // Only host memory can be short here.
  }
  errno = previous_error;
  return done;
}

void warn_of_torch(Session& log) {
  log.warning("torch_conf",
              "the program has set PyTorch's allocator variable itself: its tensors may not come "
              "from fragshim; set FRAGSHIM_CONF instead, or FRAGSHIM_TORCH=native if it is meant");
}

std::int64_t interval_ns() noexcept { return std::int64_t{settings().log_interval_ms} * 1'000'000; }

}  // namespace

void set_source(HeapSource* source) noexcept { heaps.store(source, std::memory_order_release); }

bool start(const DeviceInfo& device) noexcept {
  return guarded([&](Session& opened) {
    opened.start(device);
    if (opened.finished()) return;
    std::int64_t expected = never;
    next_sample.compare_exchange_strong(expected, coarse_now() + interval_ns());
    trace_start(device.device, device.total_memory);
    if (overridden_after_start()) warn_of_torch(opened);
  });
}

void sample_if_due() noexcept {
  std::int64_t due = next_sample.load(std::memory_order_relaxed);
  if (due == never) return;
  const std::int64_t now = coarse_now();
  if (now < due || !next_sample.compare_exchange_strong(due, now + interval_ns())) return;
  HeapSource* const source = heaps.load(std::memory_order_acquire);
  if (source) guarded([&](Session& log) { log.sample(*source); });
}

void heap_closing(const HeapView& view) noexcept {
  guarded([&](Session& log) { log.retire(view); });
}

void failure(const FailureReport& report) noexcept {
  guarded([&](Session& log) { log.failure(report); });
}

void retry(const RetryReport& report) noexcept {
  guarded([&](Session& log) { log.retry(report); });
}

void trim(const TrimReport& report) noexcept {
  guarded([&](Session& log) { log.trim(report); });
}

void warning(std::string_view code, std::string_view text) noexcept {
  guarded([&](Session& log) { log.warning(code, text); });
}

void note(std::string_view text) noexcept {
  if (!verbose()) return;
  say(text);
}

bool verbose() noexcept { return settings().verbose; }

void finish() noexcept {
  next_sample.store(never, std::memory_order_relaxed);
  trace_finish();
  if (!current.load(std::memory_order_acquire)) return;
  HeapSource* const source = heaps.load(std::memory_order_acquire);
  guarded([&](Session& log) { log.finish(source); });
}

void after_fork_in_child() noexcept {
  // The parent's session stays where it is: another thread may have held its lock at the fork.
  current.store(nullptr, std::memory_order_release);
  trace_after_fork_in_child();
  next_sample.store(never, std::memory_order_relaxed);
}

}  // namespace fragshim::log
