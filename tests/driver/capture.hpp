// Stream capture: what it forbids, and what it gathers instead of running.
#pragma once

#include "tests/driver/objects.hpp"

namespace standin {

/// Called by whatever may not happen while a capture is underway that forbids it in the calling
/// thread's mode: spoils such captures and gives CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
/// `everywhere`: a capture on any stream of the context forbids it, in whatever mode (a
/// synchronisation of the context cannot leave the captured stream out).
CUresult unsafe_in_capture(const Context& context, bool everywhere = false);

/// Submits work to a stream, or adds it to the graph that is being captured there. Work on the
/// legacy stream spoils a capture on a blocking stream.
CUresult submit(Stream& stream, Work work);

/// As `submit`, then waits for the stream. Spoils a capture on it.
CUresult submit_and_wait(Stream& stream, Work work);

/// CUDA_SUCCESS where the stream can be queried or waited for now: no capture holds it.
CUresult not_capturing(Stream& stream);

/// Work that is old enough is done by now, as far as the settings say so.
void let_time_pass(Machine& machine);

/// Gives up what a graph's memory nodes hold.
void drop_graph(Graph& graph);

}  // namespace standin
