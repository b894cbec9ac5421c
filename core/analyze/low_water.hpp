// Does the least that a program holds keep rising? Then it may be leaking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/types.hpp"

namespace fragshim {

/// Counts how often a level has gone down and up again, by more than half of its deepest fall so
/// far each time: the iterations of a program that trains, or the requests that one serves. The
/// first ones, while the deepest fall is not known yet, may be too many.
class Swings {
 public:
  void add(Bytes level);
  std::uint64_t count() const { return count_; }

 private:
  bool falling_ = false;
  Bytes high_ = 0;  // since it last began to rise
  Bytes low_ = 0;   // since it last began to fall
  Bytes deepest_ = 0;
  std::uint64_t count_ = 0;
};

/// Takes samples of what is held, over any length of time in bounded memory.
class LowWater {
 public:
  /// A low-water mark that kept rising.
  struct Growth {
    Bytes from = 0;
    Bytes to = 0;
    double seconds = 0;            // between the two
    std::uint64_t iterations = 0;  // likewise: falls and rises of what is held
    double bytes_per_second() const { return static_cast<double>(to - from) / seconds; }
    /// 0 where there are none.
    Bytes bytes_per_iteration() const { return iterations == 0 ? 0 : (to - from) / iterations; }
  };

  /// Samples come in the order of time.
  void add(double seconds, Bytes held);

  /// What is left of the run after a quarter for the start is cut into windows; the least of each
  /// must not be below the one before, and rise by 1 MiB and a fiftieth in all, in most windows.
  std::optional<Growth> growth() const;

 private:
  static constexpr std::size_t most_bins = 4096;
  static constexpr std::size_t windows = 8;

  /// The least sample of some that followed each other.
  struct Bin {
    double seconds;
    Bytes held;
    std::uint64_t iteration;
  };

  void merge_pairs();

  Swings swings_;
  std::vector<Bin> bins_;
  std::size_t per_bin_ = 1;
  std::size_t in_last_ = 0;  // samples in the last bin
};

}  // namespace fragshim
