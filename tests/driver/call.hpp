// What every entry of the driver begins with.
#pragma once

#include <new>

#include "tests/driver/objects.hpp"

namespace standin {

/// Counts the call and says whether it may go on: a failure that was ordered, a driver that is not
/// initialised or of which this process is a forked copy.
CUresult begin(const char* name, bool needs_init = true);
/// How often an entry was called.
unsigned long long calls_of(const char* name);

/// The calling thread's current context, alive or not; null if it has none.
Context* current_context();
/// The stack of contexts of the calling thread. Needs no destructor: frees in destructors of
/// thread_local objects still find it.
struct ContextStack {
  Context* items[64];
  int depth;
};
ContextStack& context_stack();
/// Why a context cannot be used; CUDA_SUCCESS where it can.
CUresult usable(const Context* context);

/// Marks this process as initialised, or as the copy that a fork made of one.
void set_initialised();
bool initialised();

/// An entry that needs no context: body() → CUresult.
template <class Body>
CUresult entry(const char* name, Body body, bool needs_init = true) noexcept {
  try {
    const CUresult verdict = begin(name, needs_init);
    return verdict == CUDA_SUCCESS ? body() : verdict;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

/// An entry that works in the current context: body(Context&) → CUresult.
template <class Body>
CUresult context_entry(const char* name, Body body) noexcept {
  return entry(name, [&] {
    Context* context = current_context();
    const CUresult verdict = usable(context);
    return verdict == CUDA_SUCCESS ? body(*context) : verdict;
  });
}

/// An entry that works on a stream: body(Stream&) → CUresult.
template <class Body>
CUresult stream_entry(const char* name, CUstream handle, bool per_thread, Body body) noexcept {
  return context_entry(name, [&](Context& context) {
    const auto stream = find_stream(context, handle, per_thread);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    return body(*stream);
  });
}

/// What the memory of a device answered, as CUDA says it.
CUresult result_of(fragshim::Status status);

/// Defines an entry in both forms, plain and for the per-thread default stream. One of the
/// parameters is called `stream`; the rest is the body, with `on` the Stream.
#define STANDIN_STREAM_ENTRY(name, suffix, parameters, ...)                             \
  extern "C" CUresult CUDAAPI name parameters {                                         \
    return standin::stream_entry(#name, stream, false,                                  \
                                 [&](standin::Stream& on) -> CUresult { __VA_ARGS__ }); \
  }                                                                                     \
  extern "C" CUresult CUDAAPI name##suffix parameters {                                 \
    return standin::stream_entry(#name #suffix, stream, true,                           \
                                 [&](standin::Stream& on) -> CUresult { __VA_ARGS__ }); \
  }

/// The same for an entry without a stream, which works on the default one: plain and _ptds.
#define STANDIN_DEFAULT_STREAM_ENTRY(name, parameters, ...)                             \
  extern "C" CUresult CUDAAPI name parameters {                                         \
    return standin::stream_entry(#name, nullptr, false,                                 \
                                 [&](standin::Stream& on) -> CUresult { __VA_ARGS__ }); \
  }                                                                                     \
  extern "C" CUresult CUDAAPI name##_ptds parameters {                                  \
    return standin::stream_entry(#name "_ptds", nullptr, true,                          \
                                 [&](standin::Stream& on) -> CUresult { __VA_ARGS__ }); \
  }

}  // namespace standin
