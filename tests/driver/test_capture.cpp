// Stream capture on the stand-in: gathered, replayed, and spoilt by what spoils it on a real one.
#include "tests/driver/test_support.hpp"

using namespace standin_test;

namespace {

constexpr std::size_t KiB = 1024;

struct Scene {
  Primary primary;
  CUdeviceptr at = allocate(64 * KiB);
  CUstream stream = new_stream();

  void begin(CUstreamCaptureMode mode) {
    REQUIRE(DRIVER(cuStreamBeginCapture_v2)(stream, mode) == CUDA_SUCCESS);
  }
  CUresult end(CUgraph* graph = nullptr) {
    CUgraph unused = nullptr;
    return DRIVER(cuStreamEndCapture)(stream, graph == nullptr ? &unused : graph);
  }
};

CUresult try_allocate() {
  CUdeviceptr at = 0;
  return DRIVER(cuMemAlloc_v2)(&at, 512);
}

}  // namespace

TEST_CASE("a captured stream's work runs at each launch of the graph", "[capture]") {
  Scene scene;
  OK(DRIVER(cuMemsetD8_v2)(scene.at, 0, KiB));
  OK(DRIVER(cuCtxSynchronize)());
  scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  fill(scene.stream, scene.at, KiB, 1);
  CUgraph graph = nullptr;
  OK(scene.end(&graph));
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(holds(scene.at, KiB, 0));
  size_t nodes = 0;
  OK(DRIVER(cuGraphGetNodes)(graph, nullptr, &nodes));
  CHECK(nodes == 1);
  CUgraphExec executable = nullptr;
  OK(DRIVER(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  OK(DRIVER(cuGraphDestroy)(graph));
  OK(DRIVER(cuGraphLaunch)(executable, scene.stream));
  OK(DRIVER(cuStreamSynchronize)(scene.stream));
  CHECK(holds(scene.at, KiB, 1));
  OK(DRIVER(cuGraphExecDestroy)(executable));
}

TEST_CASE("plain allocations spoil a capture, unless it or the thread is relaxed", "[capture]") {
  Scene scene;
  SECTION("global") {
    scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(try_allocate() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(scene.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("thread-local") {
    scene.begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CHECK(try_allocate() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(scene.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("relaxed") {
    scene.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(try_allocate());
    OK(scene.end());
  }
  SECTION("a relaxed thread") {
    scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(DRIVER(cuThreadExchangeStreamCaptureMode)(&mode));
    OK(try_allocate());
    OK(DRIVER(cuThreadExchangeStreamCaptureMode)(&mode));
    CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(scene.end());
  }
}

TEST_CASE("another thread spoils a global capture, not a thread-local one", "[capture]") {
  Scene scene;
  const bool global = GENERATE(true, false);
  scene.begin(global ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CUcontext context = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&context));
  CUresult verdict = CUDA_SUCCESS;
  std::thread([&] {
    DRIVER(cuCtxSetCurrent)(context);
    verdict = try_allocate();
  }).join();
  CHECK((verdict == CUDA_SUCCESS) == !global);
  CHECK((scene.end() == CUDA_SUCCESS) == !global);
}

TEST_CASE("querying, waiting and events of the context spoil a capture", "[capture]") {
  Scene scene;
  const CUevent event = new_event();
  scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  SECTION("query of the stream") {
    CHECK(DRIVER(cuStreamQuery)(scene.stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SECTION("query of an event") {
    CHECK(DRIVER(cuEventQuery)(event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SECTION("wait for the context") {
    CHECK(DRIVER(cuCtxSynchronize)() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SECTION("event of the context") {
    CUcontext context = nullptr;
    OK(DRIVER(cuCtxGetCurrent)(&context));
    CHECK(DRIVER(cuCtxRecordEvent)(context, event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SECTION("the stream's end") {
    OK(DRIVER(cuStreamDestroy_v2)(scene.stream));
    return;
  }
  CHECK(scene.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("stream-ordered memory in a capture belongs to the graph", "[capture]") {
  Scene scene;
  const auto before = used();
  scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  const CUdeviceptr node = allocate_on(scene.stream, KiB);
  fill(scene.stream, node, KiB, 1);
  OK(DRIVER(cuMemFreeAsync)(node, scene.stream));
  CUgraph graph = nullptr;
  OK(scene.end(&graph));
  CHECK(used() > before);
  OK(DRIVER(cuGraphDestroy)(graph));
  OK(DRIVER(cuStreamSynchronize)(scene.stream));
  CHECK(used() == before);
}

TEST_CASE("a stream that waits for a captured event takes part", "[capture]") {
  Scene scene;
  const CUevent event = new_event();
  const CUstream fork = new_stream();
  scene.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(DRIVER(cuEventRecord)(event, scene.stream));
  OK(DRIVER(cuStreamWaitEvent)(fork, event, 0));
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(DRIVER(cuStreamIsCapturing)(fork, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(scene.end());
  OK(DRIVER(cuStreamIsCapturing)(fork, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("the legacy stream cannot wait for a blocking stream that is captured", "[capture]") {
  Scene scene;
  scene.stream = new_stream(CU_STREAM_DEFAULT);
  scene.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(DRIVER(cuMemsetD8_v2)(scene.at, 0, KiB) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(scene.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
