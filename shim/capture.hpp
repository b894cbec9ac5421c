// Stream captures underway in this process. While there is one, an event recorded or queried or a
// synchronisation at the wrong moment spoils it, so the shim then does none of these.
#pragma once

#include <cuda.h>

#include <atomic>

#include "shim/context_stream.hpp"

namespace fragshim::capture {

namespace detail {
extern constinit std::atomic<int> underway;
bool is_captured(const StreamRef& stream) noexcept;
}  // namespace detail

/// Whether any stream of the process is being captured.
inline bool underway() noexcept { return detail::underway.load(std::memory_order_seq_cst) != 0; }

/// Whether this very stream is: its allocations are nodes of a graph then, the driver's to serve.
inline bool holds(const StreamRef& stream) noexcept {
  return underway() && detail::is_captured(stream);
}

/// Held around one short call that would spoil a capture. True if no capture was underway; and none
/// begins before the gate is left.
class Gate {
 public:
  Gate() noexcept;
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  explicit operator bool() const noexcept { return open_; }

 private:
  bool open_;
};

/// Held around memory calls: while a capture is underway they are made in relaxed mode, which
/// neither refuses them nor spoils the capture.
class Relaxed {
 public:
  Relaxed() noexcept;
  ~Relaxed();
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  bool exchanged_ = false;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

struct Capture;

/// Before the driver is asked to begin a capture on `stream`, in `context` where that is known:
/// from here on one is underway. Null, and none is, where the host has no memory to follow it.
Capture* announce(const StreamRef& stream, CUcontext context) noexcept;
/// Afterwards: it has begun.
void begun(Capture* announced) noexcept;
/// It has not.
void refused(Capture* announced) noexcept;
/// The capture that had begun on `stream` is over.
void ended(const StreamRef& stream) noexcept;
/// A context is gone, and its captures with it.
void context_gone(CUcontext context) noexcept;

}  // namespace fragshim::capture
