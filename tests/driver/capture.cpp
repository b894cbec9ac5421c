#include "tests/driver/capture.hpp"

#include "tests/driver/call.hpp"
#include "tests/driver/context.hpp"
#include "tests/driver/settings.hpp"

namespace standin {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// Whether a capture forbids unsafe calls to the calling thread.
bool forbids(const Capture& capture) {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == std::this_thread::get_id()) return true;
  return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
         capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/// The streams of a context on which a capture is underway. Takes the driver's lock as held.
std::vector<std::shared_ptr<Stream>> capturing_streams(const Context& context) {
  std::vector<std::shared_ptr<Stream>> found;
  for (const auto& [handle, stream] : driver().streams) {
    if (stream->context == &context && stream->capture) found.push_back(stream);
  }
  for (const auto& [thread, stream] : context.per_thread) {
    if (stream->capture) found.push_back(stream);
  }
  return found;
}

CUresult begin_capture(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> into) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock(driver().mutex);
  if (stream.kind == StreamKind::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = new_id();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->into_given_graph = into != nullptr;
  capture->graph = into ? std::move(into) : std::make_shared<Graph>();
  driver().captures.insert(capture);
  stream.capture = std::move(capture);
  stream.capture_origin = true;
  return CUDA_SUCCESS;
}

CUresult begin_capture_to_graph(Stream& stream, CUgraph handle, CUstreamCaptureMode mode) {
  std::shared_ptr<Graph> graph;
  {
    const Lock lock(driver().mutex);
    const auto found = driver().graphs.find(handle);
    if (found == driver().graphs.end()) return CUDA_ERROR_INVALID_VALUE;
    graph = found->second;
  }
  return begin_capture(stream, mode, std::move(graph));
}

/// Takes a capture off every stream that took part in it. Takes the driver's lock as held.
void dissolve(const std::shared_ptr<Capture>& capture, Context& context) {
  for (const auto& stream : capturing_streams(context)) {
    if (stream->capture != capture) continue;
    stream->capture.reset();
    stream->capture_origin = false;
  }
  driver().captures.erase(capture);
}

CUresult end_capture(Stream& stream, CUgraph* out) {
  std::shared_ptr<Capture> capture;
  {
    const Lock lock(driver().mutex);
    capture = stream.capture;
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (!stream.capture_origin) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        capture->thread != std::this_thread::get_id()) {
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    dissolve(capture, *stream.context);
    if (!capture->spoilt) {
      const auto handle = reinterpret_cast<CUgraph>(capture->graph.get());
      driver().graphs[handle] = capture->graph;
      if (out != nullptr) *out = handle;
      return CUDA_SUCCESS;
    }
  }
  if (out != nullptr) *out = nullptr;
  if (!capture->into_given_graph) drop_graph(*capture->graph);
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult capture_info(Stream& stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                      CUgraph* graph) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  *status = !stream.capture          ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream.capture->spoilt ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = stream.capture->id;
  if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(stream.capture->graph.get());
  return CUDA_SUCCESS;
}

/// The legacy stream would have to wait for a blocking stream that is being captured. Takes the
/// driver's lock as held.
bool implies_capture(Stream& stream) {
  if (stream.kind != StreamKind::legacy) return false;
  bool implied = false;
  for (const auto& other : capturing_streams(*stream.context)) {
    if (other->kind != StreamKind::blocking) continue;
    other->capture->spoilt = true;
    implied = true;
  }
  return implied;
}

}  // namespace

CUresult unsafe_in_capture(const Context& context, bool everywhere) {
  const Lock lock(driver().mutex);
  CUresult verdict = CUDA_SUCCESS;
  for (const auto& capture : driver().captures) {
    if (!forbids(*capture)) continue;
    capture->spoilt = true;
    verdict = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (!everywhere) return verdict;
  for (const auto& stream : capturing_streams(context)) {
    stream->capture->spoilt = true;
    verdict = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return verdict;
}

CUresult submit(Stream& stream, Work work) {
  {
    const Lock lock(driver().mutex);
    if (implies_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream.capture) {
      if (stream.capture->spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      stream.capture->graph->nodes.push_back(std::move(work));
      return CUDA_SUCCESS;
    }
  }
  fragshim::WorkOrder& order = stream.context->machine->order();
  order.submit(stream.id, std::move(work));
  if (settings().automatic) order.poll(std::chrono::milliseconds(0));
  return CUDA_SUCCESS;
}

CUresult submit_and_wait(Stream& stream, Work work) {
  const CUresult refused = not_capturing(stream);
  if (refused != CUDA_SUCCESS) return refused;
  const CUresult verdict = submit(stream, std::move(work));
  if (verdict != CUDA_SUCCESS) return verdict;
  fragshim::WorkOrder& order = stream.context->machine->order();
  order.complete(order.record(stream.id));
  return CUDA_SUCCESS;
}

CUresult not_capturing(Stream& stream) {
  const Lock lock(driver().mutex);
  if (implies_capture(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  if (!stream.capture) return CUDA_SUCCESS;
  stream.capture->spoilt = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void let_time_pass(Machine& machine) {
  if (settings().automatic || settings().delay.count() > 0) machine.order().poll(settings().delay);
}

}  // namespace standin

using namespace standin;

STANDIN_STREAM_ENTRY(cuStreamBeginCapture, _ptsz, (CUstream stream),
                     return begin_capture(on, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr);)
STANDIN_STREAM_ENTRY(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
                     return begin_capture(on, mode, nullptr);)
STANDIN_STREAM_ENTRY(cuStreamBeginCaptureToGraph, _ptsz,
                     (CUstream stream, CUgraph graph, const CUgraphNode*, const CUgraphEdgeData_st*,
                      size_t, CUstreamCaptureMode mode),
                     return begin_capture_to_graph(on, graph, mode);)
STANDIN_STREAM_ENTRY(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph* graph),
                     return end_capture(on, graph);)
STANDIN_STREAM_ENTRY(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus* status),
                     return capture_info(on, status, nullptr, nullptr);)
STANDIN_STREAM_ENTRY(cuStreamGetCaptureInfo, _ptsz,
                     (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id),
                     return capture_info(on, status, id, nullptr);)
STANDIN_STREAM_ENTRY(cuStreamGetCaptureInfo_v2, _ptsz,
                     (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                      CUgraph* graph, const CUgraphNode** nodes, size_t* count),
                     if (nodes != nullptr) * nodes = nullptr;
                     if (count != nullptr) * count = 0; return capture_info(on, status, id, graph);)
STANDIN_STREAM_ENTRY(cuStreamGetCaptureInfo_v3, _ptsz,
                     (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                      CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData_st** edges,
                      size_t* count),
                     if (nodes != nullptr) * nodes = nullptr;
                     if (edges != nullptr) * edges = nullptr; if (count != nullptr) * count = 0;
                     return capture_info(on, status, id, graph);)

extern "C" CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return entry("cuThreadExchangeStreamCaptureMode", [&] {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, thread_mode);
    return CUDA_SUCCESS;
  });
}
