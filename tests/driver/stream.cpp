// Streams, the events between them, and the events of whole contexts.
#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"
#include "tests/driver/pools.hpp"

namespace standin {
namespace {

CUresult create_stream(CUstream* out, unsigned flags, int priority) {
  return context_entry("cuStreamCreate", [&](Context& context) {
    if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    stream->id = new_id();
    stream->context = &context;
    stream->flags = flags;
    stream->priority = priority;
    stream->kind =
        flags == CU_STREAM_NON_BLOCKING ? StreamKind::non_blocking : StreamKind::blocking;
    context.machine->order().add_stream(stream->id, stream->kind, context.id);
    *out = reinterpret_cast<CUstream>(stream.get());
    const Lock lock(driver().mutex);
    driver().streams[*out] = stream;
    return CUDA_SUCCESS;
  });
}

CUresult query_stream(Stream& stream) {
  const CUresult refused = not_capturing(stream);
  if (refused != CUDA_SUCCESS) return refused;
  Machine& machine = *stream.context->machine;
  let_time_pass(machine);
  return machine.order().passed(machine.order().record(stream.id)) ? CUDA_SUCCESS
                                                                   : CUDA_ERROR_NOT_READY;
}

CUresult synchronize_stream(Stream& stream) {
  const CUresult refused = not_capturing(stream);
  if (refused != CUDA_SUCCESS) return refused;
  fragshim::WorkOrder& order = stream.context->machine->order();
  order.complete(order.record(stream.id));
  trim_to_thresholds(*stream.context->machine);
  return CUDA_SUCCESS;
}

CUresult record_event(Stream& stream, CUevent handle) {
  const auto event = find_event(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  WorkClock clock = stream.context->machine->order().record(stream.id);
  const Lock lock(driver().mutex);
  event->recorded = true;
  event->machine = stream.context->machine;
  event->capture = stream.capture;
  event->clock = std::move(clock);
  event->time = std::chrono::steady_clock::now();
  return CUDA_SUCCESS;
}

/// A copy of an event as it is now.
Event snapshot(const std::shared_ptr<Event>& event) {
  const Lock lock(driver().mutex);
  return *event;
}

/// Later work of the stream comes after the event. Another device's work cannot be put into this
/// one's order, so it is completed here and now.
void order_after(Stream& stream, const Event& event) {
  Machine& machine = *stream.context->machine;
  if (event.machine == &machine) {
    machine.order().order_after(stream.id, event.clock);
  } else {
    event.machine->order().complete(event.clock);
  }
}

CUresult wait_event(Stream& stream, CUevent handle) {
  const auto found = find_event(handle);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  const Event event = snapshot(found);
  if (!event.recorded) return CUDA_SUCCESS;
  if (event.capture) {
    const Lock lock(driver().mutex);
    if (stream.capture && stream.capture != event.capture) {
      event.capture->spoilt = stream.capture->spoilt = true;
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    stream.capture = event.capture;  // it takes part from now on
    return CUDA_SUCCESS;
  }
  {
    const Lock lock(driver().mutex);
    if (stream.capture) {
      stream.capture->spoilt = true;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
  }
  order_after(stream, event);
  return CUDA_SUCCESS;
}

/// An entry that asks about an event, which a capture underway may forbid.
template <class Body>
CUresult event_entry(const char* name, CUevent handle, Body body) {
  return context_entry(name, [&](Context& context) {
    const auto event = find_event(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult refused = unsafe_in_capture(context);
    if (refused != CUDA_SUCCESS) return refused;
    const Event now = snapshot(event);
    if (now.capture) return CUDA_ERROR_CAPTURED_EVENT;
    return now.recorded ? body(now) : CUDA_SUCCESS;
  });
}

CUresult elapsed(const char* name, float* out, CUevent from, CUevent to) {
  return context_entry(name, [&](Context&) {
    const auto first = find_event(from);
    const auto second = find_event(to);
    if (!first || !second || out == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const Event a = snapshot(first);
    const Event b = snapshot(second);
    if (!a.recorded || !b.recorded) return CUDA_ERROR_INVALID_HANDLE;
    if (!b.machine->order().passed(b.clock)) return CUDA_ERROR_NOT_READY;
    *out = std::chrono::duration<float, std::milli>(b.time - a.time).count();
    return CUDA_SUCCESS;
  });
}

template <class Value>
CUresult give(Value* out, Value value) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned int flags) {
  return create_stream(stream, flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return create_stream(stream, flags, priority);
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return context_entry("cuCtxGetStreamPriorityRange", [&](Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
  return context_entry("cuStreamDestroy_v2", [&](Context&) {
    std::shared_ptr<Stream> stream;  // dies after the lock is let go
    const Lock lock(driver().mutex);
    const auto found = driver().streams.find(handle);
    if (found == driver().streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    stream = found->second;
    if (stream->capture) {
      stream->capture->spoilt = true;
      if (stream->capture_origin) driver().captures.erase(stream->capture);
    }
    stream->context->machine->order().remove_stream(stream->id);
    driver().streams.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventCreate(CUevent* out, unsigned int flags) {
  return context_entry("cuEventCreate", [&](Context& context) {
    if (out == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = &context;
    event->flags = flags;
    *out = reinterpret_cast<CUevent>(event.get());
    const Lock lock(driver().mutex);
    driver().events[*out] = event;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent event) {
  return entry("cuEventDestroy_v2", [&] {
    std::shared_ptr<Event> dying;
    const Lock lock(driver().mutex);
    const auto found = driver().events.find(event);
    if (found == driver().events.end()) return CUDA_ERROR_INVALID_HANDLE;
    dying = found->second;
    driver().events.erase(found);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
  return event_entry("cuEventQuery", event, [](const Event& now) {
    let_time_pass(*now.machine);
    return now.machine->order().passed(now.clock) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  return event_entry("cuEventSynchronize", event, [](const Event& now) {
    now.machine->order().complete(now.clock);
    trim_to_thresholds(*now.machine);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  return elapsed("cuEventElapsedTime", ms, from, to);
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* ms, CUevent from, CUevent to) {
  return elapsed("cuEventElapsedTime_v2", ms, from, to);
}

CUresult CUDAAPI cuCtxRecordEvent(CUcontext handle, CUevent event) {
  return context_entry("cuCtxRecordEvent", [&](Context& current) {
    auto* context = handle == nullptr ? &current : reinterpret_cast<Context*>(handle);
    const CUresult verdict = usable(context);
    if (verdict != CUDA_SUCCESS) return verdict;
    const auto found = find_event(event);
    if (!found || found->context != context) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult refused = unsafe_in_capture(*context, true);
    if (refused != CUDA_SUCCESS) return refused;
    WorkClock clock = context->machine->order().record_group(context->id);
    const Lock lock(driver().mutex);
    found->recorded = true;
    found->machine = context->machine;
    found->capture.reset();
    found->clock = std::move(clock);
    found->time = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxWaitEvent(CUcontext handle, CUevent event) {
  return context_entry("cuCtxWaitEvent", [&](Context& current) {
    auto* context = handle == nullptr ? &current : reinterpret_cast<Context*>(handle);
    const CUresult verdict = usable(context);
    if (verdict != CUDA_SUCCESS) return verdict;
    const auto found = find_event(event);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    const Event now = snapshot(found);
    if (!now.recorded) return CUDA_SUCCESS;
    std::vector<std::shared_ptr<Stream>> streams;
    {
      const Lock lock(driver().mutex);
      for (const auto& [key, stream] : driver().streams) {
        if (stream->context == context) streams.push_back(stream);
      }
      for (const auto& [key, stream] : context->per_thread) streams.push_back(stream);
      streams.push_back(context->legacy);
    }
    for (const auto& stream : streams) order_after(*stream, now);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

STANDIN_STREAM_ENTRY(cuStreamQuery, _ptsz, (CUstream stream), return query_stream(on);)
STANDIN_STREAM_ENTRY(cuStreamSynchronize, _ptsz, (CUstream stream), return synchronize_stream(on);)
STANDIN_STREAM_ENTRY(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned int),
                     return wait_event(on, event);)
STANDIN_STREAM_ENTRY(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext* context),
                     return give(context, reinterpret_cast<CUcontext>(on.context));)
STANDIN_STREAM_ENTRY(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned int* flags),
                     return give(flags, on.flags);)
STANDIN_STREAM_ENTRY(cuStreamGetPriority, _ptsz, (CUstream stream, int* priority),
                     return give(priority, on.priority);)
STANDIN_STREAM_ENTRY(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long* id),
                     return give(id, static_cast<unsigned long long>(on.id));)
STANDIN_STREAM_ENTRY(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice* device),
                     return give(device, on.context->machine->ordinal);)
STANDIN_STREAM_ENTRY(cuEventRecord, _ptsz, (CUevent event, CUstream stream),
                     return record_event(on, event);)
STANDIN_STREAM_ENTRY(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned int),
                     return record_event(on, event);)
