// How a stream of the driver is named in the core.
//
// A program names the same stream in several ways: null, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD,
// and null again through the _ptsz entries, where it means the calling thread's own stream. The
// core wants one name a stream.
#pragma once

#include <cuda.h>

#include "core/types.hpp"

namespace fragshim {

/// The legacy default stream of a context.
inline constexpr StreamId legacy_stream = 0;

/// Marks the per-thread default stream of one thread: the tag and the thread's own number. Streams
/// that the program created are named by their handle, an address, which never has this bit.
inline constexpr StreamId per_thread_tag = StreamId{1} << 62;

struct StreamRef {
  StreamId id = legacy_stream;
  CUstream handle = CU_STREAM_LEGACY;  // means the same stream to the driver's plain entries

  /// True for a stream that the program created: it belongs to one context for life, whatever
  /// context is current.
  bool created() const { return id != legacy_stream && (id & per_thread_tag) == 0; }
};

/// The stream meant by `stream`; `per_thread` where it came through a _ptsz entry.
StreamRef identify(CUstream stream, bool per_thread) noexcept;

/// The handle by which the calling thread can name `id`; null where it cannot, since `id` is the
/// per-thread default stream of another thread.
CUstream handle_of(StreamId id) noexcept;

}  // namespace fragshim
