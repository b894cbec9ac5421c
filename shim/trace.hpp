// The binary trace of FRAGSHIM_TRACE, as the doors write it. Off, each call is one load of an
// atomic pointer. The log opens it at the first use of CUDA, ends it and drops it in a forked
// child.
#pragma once

#include <atomic>

#include "core/record/event.hpp"
#include "core/types.hpp"
#include "shim/log.hpp"

namespace fragshim {

class TraceWriter;

namespace detail {
extern constinit std::atomic<TraceWriter*> trace_writer;
void append_trace(TraceWriter& writer, log::HeapKind door, Action action, Address address,
                  Bytes size, StreamId stream) noexcept;

inline void trace(log::HeapKind door, Action action, Address address, Bytes size,
                  StreamId stream) noexcept {
  TraceWriter* const writer = trace_writer.load(std::memory_order_acquire);
  if (writer) append_trace(*writer, door, action, address, size, stream);
}
}  // namespace detail

/// A request was served through a door; `size` as the program asked for it.
inline void trace_allocate(log::HeapKind door, Address address, Bytes size,
                           StreamId stream) noexcept {
  detail::trace(door, Action::allocate, address, size, stream);
}

/// A block is about to be freed: call it before the free, or another thread's allocation of the
/// same address may come first in the trace.
inline void trace_free(log::HeapKind door, Address address, StreamId stream) noexcept {
  detail::trace(door, Action::free, address, 0, stream);
}

/// A request that no heap could serve.
inline void trace_failure(log::HeapKind door, Bytes size, StreamId stream) noexcept {
  detail::trace(door, Action::allocate_failure, 0, size, stream);
}

/// The cache was emptied on request: only that of pools can be.
inline void trace_trim() noexcept {
  detail::trace(log::HeapKind::stream_ordered, Action::trim, 0, 0, 0);
}

/// Creates the trace file where FRAGSHIM_TRACE asks for one. Once; by log::start. Throws
/// std::bad_alloc where there is no host memory to begin with: a later call may.
void trace_start(int device, Bytes device_total);
/// Ends the trace; later events are dropped.
void trace_finish() noexcept;
/// In a forked child: the parent's trace is left alone.
void trace_after_fork_in_child() noexcept;

}  // namespace fragshim
