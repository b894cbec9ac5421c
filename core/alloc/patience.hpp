// Waiting for what other threads or the device are about to do, but not for ever.
#pragma once

#include <chrono>
#include <thread>

#include "core/alloc/fence_queue.hpp"

namespace fragshim {

class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit)
      : end_(std::chrono::steady_clock::now() + limit) {}

  /// Lets go of the heap's lock for a moment. False: the time is over.
  bool rest(HeapLock& lock) {
    if (std::chrono::steady_clock::now() > end_) return false;
    const Unlocked unlocked(lock);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return true;
  }

 private:
  std::chrono::steady_clock::time_point end_;
};

}  // namespace fragshim
