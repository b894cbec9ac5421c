#include "shim/capture.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>

#include "shim/driver.hpp"

namespace fragshim::capture {
namespace detail {
constinit std::atomic<int> underway{0};

bool is_captured(const StreamRef& stream) noexcept {
  const Driver* const real = driver();
  if (!real || !real->cuStreamIsCapturing) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return real->cuStreamIsCapturing(stream.handle, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}
}  // namespace detail

namespace {

constinit std::atomic<int> in_gate{0};

/// The streams on which captures have begun. More at once than there is room for are counted by
/// nobody: `begun` takes back their announcement.
struct Table {
  struct Entry {
    StreamId stream;
    CUcontext context;
  };
  std::mutex mutex;
  std::array<Entry, 256> entries;
  std::size_t size = 0;

  template <class Matches>
  void remove(Matches matches) noexcept {
    const std::lock_guard lock(mutex);
    const auto end = entries.begin() + static_cast<std::ptrdiff_t>(size);
    const auto kept = std::remove_if(entries.begin(), end, matches);
    const auto removed = static_cast<int>(end - kept);
    size -= static_cast<std::size_t>(removed);
    if (removed != 0) detail::underway.fetch_sub(removed, std::memory_order_seq_cst);
  }
};

constinit Table table{};

}  // namespace

Gate::Gate() noexcept {
  in_gate.fetch_add(1, std::memory_order_seq_cst);
  open_ = !underway();
  if (!open_) in_gate.fetch_sub(1, std::memory_order_release);
}

Gate::~Gate() {
  if (open_) in_gate.fetch_sub(1, std::memory_order_release);
}

Relaxed::Relaxed() noexcept {
  if (!underway()) return;
  const Driver* const real = driver();
  if (!real || !real->cuThreadExchangeStreamCaptureMode) return;
  exchanged_ = real->cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
}

Relaxed::~Relaxed() {
  if (exchanged_) driver()->cuThreadExchangeStreamCaptureMode(&mode_);
}

void announce() noexcept {
  detail::underway.fetch_add(1, std::memory_order_seq_cst);
  // Calls made behind the gate take a microsecond; one that hangs must not hang the program.
  for (int turn = 0; turn < 100'000; ++turn) {
    if (in_gate.load(std::memory_order_seq_cst) == 0) return;
    sched_yield();
  }
}

void begun(const StreamRef& stream, CUcontext context) noexcept {
  const std::lock_guard lock(table.mutex);
  if (context == nullptr || table.size == table.entries.size()) {
    detail::underway.fetch_sub(1, std::memory_order_seq_cst);
    return;
  }
  table.entries[table.size++] = {stream.id, context};
}

void ended(const StreamRef& stream) noexcept {
  if (!underway()) return;
  table.remove([&](const Table::Entry& entry) { return entry.stream == stream.id; });
}

void context_gone(CUcontext context) noexcept {
  if (!underway()) return;
  table.remove([&](const Table::Entry& entry) { return entry.context == context; });
}

}  // namespace fragshim::capture
