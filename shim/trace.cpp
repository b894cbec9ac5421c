#include "shim/trace.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <string>

#include "config/environment.hpp"
#include "config/file_pattern.hpp"
#include "core/record/own_file.hpp"
#include "core/record/trace_writer.hpp"
#include "shim/log.hpp"
#include "shim/process.hpp"

namespace fragshim {

namespace detail {
constinit std::atomic<TraceWriter*> trace_writer{nullptr};
}

namespace {

constinit std::atomic<bool> begun{false};

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::uint32_t thread_id() noexcept {
  static constinit thread_local std::uint32_t id = 0;
  if (id == 0) id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return id;
}

constexpr EventDoor door_of(log::HeapKind kind) {
  return kind == log::HeapKind::synchronous ? EventDoor::synchronous : EventDoor::stream_ordered;
}

void on_stop(int error) noexcept {
  char reason[128];
  try {
    log::warning("trace",
                 std::string("the trace ends early: ") + strerror_r(error, reason, sizeof reason));
  } catch (const std::exception&) {
    // No host memory to say so.
  }
}

void warn_of_no_trace(const std::string& path, int error) {
  char reason[128];
  log::warning("trace", "cannot create the trace " + path + ": " +
                            why_not_created(error, reason, sizeof reason) +
                            "; going on without it");
}

}  // namespace

void detail::append_trace(TraceWriter& writer, log::HeapKind door, Action action, Address address,
                          Bytes size, StreamId stream) noexcept {
  writer.append({now_ns(), address, size, stream, thread_id(), action, door_of(door)});
}

void trace_start(int device, Bytes device_total) {
  if (begun.load() || settings().trace.empty()) return;
  const std::string path = expand_file_pattern(settings().trace, ProcessEnvironment{});
  auto writer = std::make_unique<TraceWriter>();
  if (begun.exchange(true)) return;
  TraceHeader header;
  header.start_ns = now_ns();
  header.device = static_cast<std::uint32_t>(device);
  header.device_total = device_total;
  const Status opened = writer->open(path.c_str(), header, &on_stop);
  if (!opened.ok()) {
    begun.store(false);  // until it has been said, which takes host memory
    warn_of_no_trace(path, opened.code);
    begun.store(true);
    return;
  }
  // Never freed: the program's last destructors may free device memory.
  detail::trace_writer.store(writer.release(), std::memory_order_release);
}

void trace_finish() noexcept {
  // It stays, closed: the program's last destructors may free device memory.
  TraceWriter* const writer = detail::trace_writer.load(std::memory_order_acquire);
  if (writer) writer->close();
}

void trace_after_fork_in_child() noexcept {
  TraceWriter* const writer = detail::trace_writer.exchange(nullptr);
  if (writer) writer->abandon();
  begun.store(false);
}

}  // namespace fragshim
