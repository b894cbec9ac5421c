// Captures that begin and end, and streams that are destroyed.
#include "shim/capture.hpp"
#include "shim/context.hpp"
#include "shim/hooks.hpp"

namespace fragshim {
namespace {

template <class Begin>
CUresult begin_capture(const StreamRef& stream, Begin begin) noexcept {
  capture::Capture* const announced = capture::announce(stream, context_of(stream));
  if (announced == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = begin();
  if (result == CUDA_SUCCESS) {
    capture::begun(announced);
  } else {
    capture::refused(announced);
  }
  return result;
}

/// A capture that was spoilt ends with an error; one ended on the wrong stream or thread goes on.
template <class End>
CUresult end_capture(const StreamRef& stream, End end) noexcept {
  const CUresult result = end();
  if (result == CUDA_SUCCESS || !capture::holds(stream)) capture::ended(stream);
  return result;
}

/// Blocks of a stream that goes get their fence while it can still be recorded.
void leave_stream(const StreamRef& stream) noexcept {
  ContextHeap* const heap = heap_of(stream);
  if (heap == nullptr) return;
  for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
    if (Heap* const served = heap->door(kind).heap.get()) served->forget_stream(stream.id);
  }
}

}  // namespace
}  // namespace fragshim

using namespace fragshim;

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamBeginCapture(CUstream stream) {
  FRAGSHIM_ENTER(cuStreamBeginCapture, stream);
  return begin_capture(identify(stream, false), [&] { return real->cuStreamBeginCapture(stream); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream stream) {
  FRAGSHIM_ENTER(cuStreamBeginCapture_ptsz, stream);
  return begin_capture(identify(stream, true),
                       [&] { return real->cuStreamBeginCapture_ptsz(stream); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream,
                                                         CUstreamCaptureMode mode) {
  FRAGSHIM_ENTER(cuStreamBeginCapture_v2, stream, mode);
  return begin_capture(identify(stream, false),
                       [&] { return real->cuStreamBeginCapture_v2(stream, mode); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream stream,
                                                              CUstreamCaptureMode mode) {
  FRAGSHIM_ENTER(cuStreamBeginCapture_v2_ptsz, stream, mode);
  return begin_capture(identify(stream, true),
                       [&] { return real->cuStreamBeginCapture_v2_ptsz(stream, mode); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                             const CUgraphNode* dependencies,
                                                             const CUgraphEdgeData_st* edges,
                                                             size_t count,
                                                             CUstreamCaptureMode mode) {
  FRAGSHIM_ENTER(cuStreamBeginCaptureToGraph, stream, graph, dependencies, edges, count, mode);
  return begin_capture(identify(stream, false), [&] {
    return real->cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode);
  });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                                  const CUgraphNode* dependencies,
                                                                  const CUgraphEdgeData_st* edges,
                                                                  size_t count,
                                                                  CUstreamCaptureMode mode) {
  FRAGSHIM_ENTER(cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies, edges, count, mode);
  return begin_capture(identify(stream, true), [&] {
    return real->cuStreamBeginCaptureToGraph_ptsz(stream, graph, dependencies, edges, count, mode);
  });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  FRAGSHIM_ENTER(cuStreamEndCapture, stream, graph);
  return end_capture(identify(stream, false),
                     [&] { return real->cuStreamEndCapture(stream, graph); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  FRAGSHIM_ENTER(cuStreamEndCapture_ptsz, stream, graph);
  return end_capture(identify(stream, true),
                     [&] { return real->cuStreamEndCapture_ptsz(stream, graph); });
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FRAGSHIM_ENTER(cuThreadExchangeStreamCaptureMode, mode);
  return real->cuThreadExchangeStreamCaptureMode(mode);
}

FRAGSHIM_EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
  FRAGSHIM_ENTER(cuStreamDestroy_v2, stream);
  const StreamRef leaving = identify(stream, false);
  if (!leaving.created()) return real->cuStreamDestroy_v2(stream);
  leave_stream(leaving);
  forget_remembered();  // the handle may name another context's stream next
  const CUresult result = real->cuStreamDestroy_v2(stream);
  if (result == CUDA_SUCCESS) capture::ended(leaving);
  return result;
}
