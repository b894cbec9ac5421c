// What the log is told of contexts: the cards, and the heaps in each.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <new>
#include <string>

#include "shim/capture.hpp"
#include "shim/context.hpp"
#include "shim/driver.hpp"

namespace fragshim {
namespace {

/// Shows the log the heaps of every context. Made once, never destroyed.
class Source final : public log::HeapSource {
 public:
  void each_heap(log::HeapVisitor& visitor) noexcept override {
    for (CUdevice device = 0; device < Gpu::max_gpus; ++device) {
      for (const HeapKind kind : {HeapKind::synchronous, HeapKind::stream_ordered}) {
        each_context([&](ContextHeap& heap) {
          if (heap.gpu.ordinal() == device) visitor.visit(view_of(heap, kind));
        });
      }
    }
  }

  bool memory_info(int device, Bytes* free, Bytes* total) noexcept override {
    if (capture::underway()) return false;
    bool known = false;
    each_context([&](ContextHeap& heap) {
      if (heap.gpu.ordinal() != device || known) return;
      known = heap.cuda.memory_info(free, total).ok();
    });
    return known;
  }

  Bytes managed_bytes() noexcept override { return managed_memory().counters().reserved; }
  Bytes host_bytes() noexcept override { return host_memory().counters().reserved; }
};

/// "GPU-" and the id in the usual groups of digits; empty where the driver has none.
std::string uuid_of(CUdevice device) {
  const Driver& real = *driver();
  CUuuid uuid{};
  const auto ask = real.cuDeviceGetUuid_v2 ? real.cuDeviceGetUuid_v2 : real.cuDeviceGetUuid;
  if (!ask || ask(&uuid, device) != CUDA_SUCCESS) return {};
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits.data();
  }
  return text;
}

log::DeviceInfo describe(const Gpu& gpu) {
  const Driver& real = *driver();
  log::DeviceInfo info;
  info.device = gpu.ordinal();
  std::array<char, 256> name{};
  if (real.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, info.device) ==
      CUDA_SUCCESS) {
    info.name = name.data();
  }
  info.uuid = uuid_of(info.device);
  info.total_memory = gpu.total.load(std::memory_order_relaxed);
  real.cuDriverGetVersion(&info.driver_version);
  return info;
}

}  // namespace

void announce(ContextHeap& heap) noexcept {
  if (heap.gpu.announced.exchange(true)) return;
  alignas(Source) static std::byte place[sizeof(Source)];
  static Source* const source = new (place) Source;
  log::set_source(source);
  bool known = false;
  try {
    known = log::start(describe(heap.gpu));
  } catch (const std::bad_alloc&) {
    // Until the host has memory again, the log does not know of the card.
  }
  if (!known) heap.gpu.announced.store(false);
}

log::HeapView view_of(ContextHeap& heap, HeapKind kind) noexcept {
  Door& door = heap.door(kind);
  return {heap.gpu.ordinal(), kind, &door.shown(), door.metered.meter().device_time_ns / 1000};
}

}  // namespace fragshim
