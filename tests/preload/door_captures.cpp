// Graphs: captured allocations are the driver's, and nothing of ours disturbs a capture.
#include <dlfcn.h>

#include <thread>

#include "tests/preload/door_support.hpp"

using namespace fragshim;
using namespace fragshim::test;

namespace {

CUgraph end_capture(CUstream stream) {
  CUgraph graph = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(graph != nullptr);
  return graph;
}

void begin_capture(CUstream stream, CUstreamCaptureMode mode) {
  REQUIRE(cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS);
}

/// Frees, allocations and all that a heap might do about them, on the calling thread.
void churn(CUstream stream) {
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr block = 0;
    REQUIRE(cuMemAlloc(&block, 1 * MiB) == CUDA_SUCCESS);
    blocks.push_back(block);
    REQUIRE(cuMemAllocAsync(&block, 1 * MiB, stream) == CUDA_SUCCESS);
    REQUIRE(cuMemFreeAsync(block, stream) == CUDA_SUCCESS);
  }
  for (const CUdeviceptr block : blocks) REQUIRE(cuMemFree(block) == CUDA_SUCCESS);
}

/// The first form of the entry, whose name the header gives to the second.
CUresult begin_capture_v1(CUstream stream) {
  using Begin = CUresult (*)(CUstream);
  const auto begin = reinterpret_cast<Begin>(dlsym(RTLD_DEFAULT, "cuStreamBeginCapture"));
  REQUIRE(begin != nullptr);
  return begin(stream);
}

const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                     CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                     CU_STREAM_CAPTURE_MODE_RELAXED};

}  // namespace

TEST_CASE("allocations on a capturing stream become nodes of the graph", "[serve]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr cached = allocate_on(stream, 1 * MiB);
  release_on(stream, cached);
  begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  const CUdeviceptr node = allocate_on(stream, 1 * MiB);
  touch(node, 1 * MiB, stream);
  release_on(stream, node);
  const CUgraph graph = end_capture(stream);
  std::size_t nodes = 0;
  REQUIRE(cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
  CHECK(nodes >= 2);  // the allocation and the work; on a real driver the free, too
  CHECK(node != cached);
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(allocate_on(stream, 1 * MiB) == cached);  // untouched by all that
  release_on(stream, cached);
}

TEST_CASE("the doors work beside a capture, in every mode, and do not spoil it", "[serve]") {
  const Primary context;
  const Stream captured;
  const Stream other;
  const CUdeviceptr block = allocate(1 * MiB);
  for (const CUstreamCaptureMode mode : modes) {
    begin_capture(captured, mode);
    touch(block, 1 * MiB, captured);
    churn(other);  // the thread that captures
    std::thread([&] {
      REQUIRE(cuCtxSetCurrent(context.get()) == CUDA_SUCCESS);
      churn(other);
    }).join();
    CHECK(free_memory() > 0);
    CHECK(cuGraphDestroy(end_capture(captured)) == CUDA_SUCCESS);
  }
  release(block);
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(hazards() == 0);
}

TEST_CASE("hundreds of captures at once count to the last", "[serve][standin]") {
  const Primary context;
  const Stream other;
  const std::vector<Stream> streams(600);
  for (const Stream& stream : streams) begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  // The last to begin end last.
  for (const Stream& stream : streams) {
    const std::uint64_t before = driver_calls("cuMemAllocAsync");
    const CUdeviceptr node = allocate_on(stream, 1 * MiB);
    CHECK(driver_calls("cuMemAllocAsync") == before + 1);
    release_on(stream, node);
    if (&stream == &streams.back()) churn(other);
    CHECK(cuGraphDestroy(end_capture(stream)) == CUDA_SUCCESS);
  }
  const CUdeviceptr block = allocate_on(other, 7 * MiB);
  release_on(other, block);
  CHECK(allocate_on(other, 7 * MiB) == block);
  release_on(other, block);
}

TEST_CASE("after a capture memory is recycled as before", "[serve]") {
  const Primary context;
  const Stream stream;
  begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(cuGraphDestroy(end_capture(stream)) == CUDA_SUCCESS);
  const CUdeviceptr block = allocate_on(stream, 7 * MiB);
  release_on(stream, block);
  CHECK(allocate_on(stream, 7 * MiB) == block);  // from the heap, not from a graph
  release_on(stream, block);
}

TEST_CASE("a capturing stream that is destroyed takes its capture along", "[serve][watch]") {
  const Primary context;
  Stream doomed;
  begin_capture(doomed, CU_STREAM_CAPTURE_MODE_GLOBAL);
  REQUIRE(cuStreamDestroy(doomed.release()) == CUDA_SUCCESS);
  std::vector<CUdeviceptr> blocks;
  // Fences work again: freed memory comes back instead of piling up.
  for (int round = 0; round < 300; ++round) {
    release(allocate(2 * MiB));
    REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  }
  CHECK(total_memory() - free_memory() < 1 * GiB);
}

TEST_CASE("a capture that was spoilt is over when it is ended", "[serve]") {
  const Primary context;
  const Stream stream;
  begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(cuStreamSynchronize(stream) != CUDA_SUCCESS);  // not allowed in a capture
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS);
  const CUdeviceptr block = allocate_on(stream, 9 * MiB);
  touch(block, 9 * MiB, stream);
  release_on(stream, block);
  CHECK(allocate_on(stream, 9 * MiB) == block);
  release_on(stream, block);
}

TEST_CASE("the per-thread default stream can be captured", "[serve]") {
  const Primary context;
  REQUIRE(cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
          CUDA_SUCCESS);
  CUdeviceptr node = 0;
  CHECK(cuMemAllocAsync_ptsz(&node, 1 * MiB, nullptr) == CUDA_SUCCESS);
  CHECK(cuMemFreeAsync_ptsz(node, nullptr) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  REQUIRE(cuStreamEndCapture_ptsz(nullptr, &graph) == CUDA_SUCCESS);
  std::size_t nodes = 0;
  REQUIRE(cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
  CHECK(nodes >= 1);
  CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS);
}

// With entries that older drivers lack.
TEST_CASE("a capture counts by whichever entry it begins", "[newest]") {
  const Primary context;
  const Stream stream;
  const CUdeviceptr cached = allocate_on(stream, 1 * MiB);
  release_on(stream, cached);
  const auto captures = [&] {
    const CUdeviceptr node = allocate_on(stream, 1 * MiB);
    release_on(stream, node);
    end_capture(stream);
    return node != cached;
  };
  REQUIRE(begin_capture_v1(stream) == CUDA_SUCCESS);
  CHECK(captures());
  CUgraph graph = nullptr;
  REQUIRE(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  REQUIRE(cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                      CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(captures());
  CHECK(allocate_on(stream, 1 * MiB) == cached);
  release_on(stream, cached);
}

TEST_CASE("the mode in which a thread meets captures is the program's own", "[newest]") {
  const Primary context;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  REQUIRE(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
  release(allocate(5 * MiB));
  REQUIRE(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
}
