// Does the least that a program holds keep rising? Then it may be leaking.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/types.hpp"

namespace fragshim {

/// Takes samples of what is held, over any length of time in bounded memory.
class LowWater {
 public:
  /// A low-water mark that kept rising.
  struct Growth {
    Bytes from = 0;
    Bytes to = 0;
    double seconds = 0;  // between the two
    double bytes_per_second() const { return static_cast<double>(to - from) / seconds; }
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
  };

  void merge_pairs();

  std::vector<Bin> bins_;
  std::size_t per_bin_ = 1;
  std::size_t in_last_ = 0;  // samples in the last bin
};

}  // namespace fragshim
