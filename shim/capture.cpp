#include "shim/capture.hpp"

#include <sched.h>

#include <mutex>
#include <new>

#include "shim/driver.hpp"

namespace fragshim::capture {

struct Capture {
  StreamId stream;
  CUcontext context;
  Capture* next;
};

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

constinit std::mutex mutex;
constinit Capture* first = nullptr;  // of those that have begun

void drop(Capture* capture) noexcept {
  delete capture;
  detail::underway.fetch_sub(1, std::memory_order_seq_cst);
}

template <class Matches>
void drop_where(Matches matches) noexcept {
  const std::lock_guard lock(mutex);
  for (Capture** link = &first; *link != nullptr;) {
    Capture* const capture = *link;
    if (matches(*capture)) {
      *link = capture->next;
      drop(capture);
    } else {
      link = &capture->next;
    }
  }
}

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

Capture* announce(const StreamRef& stream, CUcontext context) noexcept {
  auto* const announced = new (std::nothrow) Capture{stream.id, context, nullptr};
  if (announced == nullptr) return nullptr;
  detail::underway.fetch_add(1, std::memory_order_seq_cst);
  // Calls made behind the gate take a microsecond; one that hangs must not hang the program.
  for (int turn = 0; turn < 100'000; ++turn) {
    if (in_gate.load(std::memory_order_seq_cst) == 0) break;
    sched_yield();
  }
  return announced;
}

void begun(Capture* announced) noexcept {
  const std::lock_guard lock(mutex);
  announced->next = first;
  first = announced;
}

void refused(Capture* announced) noexcept { drop(announced); }

void ended(const StreamRef& stream) noexcept {
  if (!underway()) return;
  drop_where([&](const Capture& capture) { return capture.stream == stream.id; });
}

void context_gone(CUcontext context) noexcept {
  if (!underway()) return;
  drop_where([&](const Capture& capture) { return capture.context == context; });
}

}  // namespace fragshim::capture
