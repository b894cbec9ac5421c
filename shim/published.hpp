// A value made once, by whichever thread needs it first, and kept for ever. No lock: the loader's
// own lock may be held above or below a hook, so a lock of ours around dlopen could deadlock.
#pragma once

#include <atomic>
#include <new>

namespace fragshim {

template <typename T>
class Published {
 public:
  /// The value, or null before there is one.
  const T* get() const noexcept { return value_.load(std::memory_order_acquire); }

  /// Publishes `made` (from new, or null) unless another thread was faster, and returns what is
  /// published, with null for null. A value that came too late is deleted.
  const T* publish(const T* made) noexcept {
    const T* expected = nullptr;
    if (!made || value_.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) {
      return made;
    }
    delete made;
    return expected;
  }

 private:
  std::atomic<const T*> value_{nullptr};
};

}  // namespace fragshim
