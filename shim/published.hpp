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

  /// Publishes `made` unless another thread was faster, and returns what is published. A value that
  /// came too late stays its maker's.
  const T* publish(const T* made) noexcept {
    const T* expected = nullptr;
    const bool first = value_.compare_exchange_strong(expected, made, std::memory_order_acq_rel);
    return first ? made : expected;
  }

 private:
  std::atomic<const T*> value_{nullptr};
};

/// The same for a value that must be there even where the host has no memory: it lies in here.
template <typename T>
class PublishedInPlace {
 public:
  const T* get() const noexcept { return value_.get(); }

  /// Has fill(T&) make the value. Threads that do so at once each fill one of their own; all but
  /// the first need host memory for that. Null where there is none.
  template <typename Fill>
  const T* make(Fill fill) noexcept {
    if (!taken_.test_and_set()) {
      fill(first_);
      return value_.publish(&first_);
    }
    T* const made = new (std::nothrow) T{};
    if (!made) return get();
    fill(*made);
    const T* const winner = value_.publish(made);
    if (winner != made) delete made;
    return winner;
  }

 private:
  std::atomic_flag taken_;
  T first_{};
  Published<T> value_;
};

}  // namespace fragshim
