#include "shim/context_stream.hpp"

#include <atomic>

namespace fragshim {
namespace {

/// The calling thread's name for its per-thread default stream. Numbers are never used twice, so
/// what a thread leaves behind is never taken for another's.
StreamId own_stream() noexcept {
  static constinit std::atomic<StreamId> threads{0};
  static constinit thread_local StreamId own = 0;
  if (own == 0) own = per_thread_tag | (threads.fetch_add(1, std::memory_order_relaxed) + 1);
  return own;
}

}  // namespace

StreamRef identify(CUstream stream, bool per_thread) noexcept {
  const bool null = stream == nullptr;
  if (stream == CU_STREAM_PER_THREAD || (null && per_thread)) {
    return {own_stream(), CU_STREAM_PER_THREAD};
  }
  if (null || stream == CU_STREAM_LEGACY) return {};
  return {reinterpret_cast<StreamId>(stream), stream};
}

CUstream handle_of(StreamId id) noexcept {
  if (id == legacy_stream) return CU_STREAM_LEGACY;
  if ((id & per_thread_tag) == 0) return reinterpret_cast<CUstream>(id);
  return id == own_stream() ? CU_STREAM_PER_THREAD : nullptr;
}

}  // namespace fragshim
