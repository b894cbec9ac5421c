// Which doors of a context are served, and by what.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "config/settings.hpp"
#include "core/alloc/native_heap.hpp"
#include "core/alloc/virtual_heap.hpp"
#include "shim/context.hpp"
#include "shim/driver.hpp"
#include "shim/process.hpp"

namespace fragshim {
namespace {

/// Whether a tool watches every allocation of this process: a sanitizer, an injected tracer.
bool watched_by_tool() noexcept {
  if (environ == nullptr) return false;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    for (const char* sign : {"CUDA_INJECTION64_PATH=", "NV_COMPUTE_SANITIZER", "NV_SANITIZER"}) {
      const std::size_t length = std::strlen(sign);
      const bool alike = std::strncmp(*entry, sign, length) == 0;
      if (alike && (*entry)[length] != 0) return true;  // not an empty path, which injects nothing
    }
  }
  return false;
}

/// Whether FRAGSHIM_MODE was set by the user, rather than left at its default.
bool mode_was_set(const Settings& now) noexcept {
  for (const EffectiveOption& option : now.effective) {
    if (option.name == "FRAGSHIM_MODE") return option.source != "default";
  }
  return false;
}

/// Which doors this process serves.
struct Served {
  bool synchronous = false;
  bool stream_ordered = false;
};

Served decide() noexcept {
  const Settings& now = settings();
  if (now.mode != Mode::allocate || now.torch == Torch::native) return {};
  if (watched_by_tool() && !mode_was_set(now)) {
    log::warning("tool",
                 "a tool watches this process (compute-sanitizer, CUDA_INJECTION64_PATH): "
                 "every allocation goes to the driver, fragshim only counts "
                 "(FRAGSHIM_MODE=allocate: it serves all the same)");
    return {};
  }
  return {now.ipc != Ipc::dedicated, true};
}

/// On request virtual memory, which cannot be shared by IPC, RDMA or peer access.
std::unique_ptr<Heap> synchronous_heap(ContextHeap& heap, const AllocationConfig& config) {
  if (config.policy == PolicyKind::stitch) {
    if (heap.cuda.granularity() != 0 && heap.cuda.has_context_fences()) {
      return std::make_unique<VirtualHeap>(heap.synchronous.limited, config);
    }
    log::warning(
        "policy",
        "policy:stitch needs virtual memory and CUDA 12.5 to serve cudaMalloc, which keeps "
        "to segments here");
  }
  AllocationConfig segments = config;
  segments.expandable_segments = false;
  NativeOptions options;
  options.reuse = NativeOptions::Reuse::fenced;
  options.allowed = heap.gpu.budget.limit();
  options.fence_spare = 64 * MiB;
  options.large_unit = 64 * KiB;  // pages of GPUDirect and dma-buf; the driver aligns for them, too
  return std::make_unique<NativeHeap>(heap.synchronous.limited, segments, options);
}

/// Null where the GPU or the driver has no virtual memory or no pools.
std::unique_ptr<Heap> stream_ordered_heap(ContextHeap& heap, const AllocationConfig& config) {
  if (heap.cuda.granularity() == 0 || heap.gpu.default_pool.load() == nullptr) return nullptr;
  if (config.policy == PolicyKind::native) {
    // Its blocks belong to one stream for life: freed on another one, as PyTorch's backend frees
    // what several streams have used, they would be handed out under that stream's work.
    log::warning("policy",
                 "policy:native concerns cudaMalloc; stream-ordered memory, PyTorch's tensors "
                 "included, keeps its own policy");
  }
  return std::make_unique<VirtualHeap>(heap.stream_ordered.limited, config);
}

}  // namespace

bool furnish(ContextHeap& heap) noexcept {
  static const Served served = decide();
  try {
    const AllocationConfig& config = settings().allocation;
    if (served.synchronous) heap.synchronous.heap = synchronous_heap(heap, config);
    if (served.stream_ordered) heap.stream_ordered.heap = stream_ordered_heap(heap, config);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace fragshim
