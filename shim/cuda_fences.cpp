#include "shim/cuda_fences.hpp"

#include <new>
#include <utility>

#include "shim/driver.hpp"

namespace fragshim {

FencePool::~FencePool() {
  while (newest_ != nullptr) delete std::exchange(newest_, newest_->older);
}

Fence FencePool::take_recycled() noexcept {
  const std::lock_guard lock(mutex_);
  Entry* const entry = free_;
  if (entry != nullptr) free_ = entry->next;
  return {reinterpret_cast<std::uint64_t>(entry)};
}

Fence FencePool::take(CUresult* result) noexcept {
  if (const Fence fence = take_recycled()) return fence;
  CUevent event = nullptr;
  *result = driver()->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  if (*result != CUDA_SUCCESS) return {};
  auto* const entry = new (std::nothrow) Entry{event, nullptr, nullptr};
  if (entry == nullptr) {
    driver()->cuEventDestroy_v2(event);
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return {};
  }
  const std::lock_guard lock(mutex_);
  entry->older = std::exchange(newest_, entry);
  return {reinterpret_cast<std::uint64_t>(entry)};
}

void FencePool::give(Fence fence) noexcept {
  auto* const entry = reinterpret_cast<Entry*>(fence.handle);
  const std::lock_guard lock(mutex_);
  entry->next = free_;
  free_ = entry;
}

}  // namespace fragshim
