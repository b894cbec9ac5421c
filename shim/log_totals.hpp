// What the log remembers of heaps between samples: the totals of those that are gone, and the
// moment at which each kind of heap wasted the most.
#pragma once

#include <vector>

#include "shim/log_records.hpp"

namespace fragshim::log {

/// Reserved bytes that the program had not asked for, by where they were.
struct Waste {
  Bytes reserved = 0;
  Bytes pinned = 0;
  Bytes releasable = 0;
  Bytes rounding = 0;  // inside live blocks
  Bytes sum() const { return pinned + releasable + rounding; }
};

/// A kind of heap on one device over the whole process.
struct HeapTotal {
  HeapSample sample;
  Waste worst;
};

/// Adds a heap's sample to those of its device and kind: several contexts of a device are one line
/// of the log. Counts and sizes add up; the largest free block is the larger one.
void add_sample(std::vector<HeapSample>& samples, const HeapSample& sample);

class Totals {
 public:
  /// Looks at the heaps as they are now: is this the worst waste so far?
  void observe(const HeapSample& now);

  /// A heap of that device and kind is gone: its counts stay, its memory does not.
  void retire(const HeapSample& last);

  /// Everything, with the heaps that are still there, in the order of devices and kinds.
  std::vector<HeapTotal> all(const std::vector<HeapSample>& now) const;

 private:
  HeapTotal& entry(int device, HeapKind kind);

  std::vector<HeapTotal> entries_;  // of retired heaps; sizes are peaks only
};

}  // namespace fragshim::log
