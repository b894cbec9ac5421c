// The lock of a heap, and how it is let go of around calls of the driver.
#pragma once

#include <cstdint>
#include <mutex>

namespace fragshim {

/// Who calls a heap.
enum class Callers : std::uint8_t {
  many,  // any threads at any time
  one,   // one thread at a time, as in a replay: locking would cost a sixth of all it does
};

class HeapMutex {
 public:
  explicit HeapMutex(Callers callers) noexcept : shared_(callers == Callers::many) {}

  void lock() {
    if (shared_) mutex_.lock();
  }
  void unlock() {
    if (shared_) mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  const bool shared_;
};

using HeapLock = std::unique_lock<HeapMutex>;

/// Lets go of a heap's lock for the length of a driver call.
class Unlocked {
 public:
  explicit Unlocked(HeapLock& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  HeapLock& lock_;
};

}  // namespace fragshim
