// Events of the driver, recycled: creating one costs more than recording it.
#pragma once

#include <cuda.h>

#include <mutex>

#include "core/device/device.hpp"

namespace fragshim {

/// The events of one context. Thread-safe; asks the driver only when none is at hand, and then with
/// no lock held. Its records live as long as it does, which is longer than the context: fences may
/// be given back after that is gone. So the events are left to the context.
class FencePool {
 public:
  FencePool() = default;
  ~FencePool();
  FencePool(const FencePool&) = delete;
  FencePool& operator=(const FencePool&) = delete;

  /// An event without timing; the context must be current. Null fence: `result` says why.
  Fence take(CUresult* result) noexcept;
  /// One that is at hand already; a null fence where there is none.
  Fence take_recycled() noexcept;
  void give(Fence fence) noexcept;

  static CUevent event(Fence fence) noexcept {
    return reinterpret_cast<const Entry*>(fence.handle)->event;
  }

 private:
  struct Entry {
    CUevent event;
    Entry* next;   // of those at hand
    Entry* older;  // made before this one
  };

  std::mutex mutex_;
  Entry* free_ = nullptr;
  Entry* newest_ = nullptr;
};

}  // namespace fragshim
