// Where a model takes its decisions from: a seed, or the bytes of a fuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "core/types.hpp"

namespace fragshim::model {

class Choices {
 public:
  virtual ~Choices() = default;
  /// A number below `count` (> 0).
  virtual std::uint64_t below(std::uint64_t count) = 0;

  bool one_in(std::uint64_t count) { return below(count) == 0; }
  /// A size up to `largest` (> 0), each power of two as likely as another.
  Bytes size_up_to(Bytes largest) {
    unsigned powers = 0;
    while (largest >> powers != 0) ++powers;
    const Bytes top = Bytes{1} << below(powers);
    const Bytes size = top + below(top);
    return size < largest ? size : largest;
  }
};

class SeededChoices final : public Choices {
 public:
  explicit SeededChoices(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t count) override { return random_() % count; }

 private:
  std::mt19937_64 random_;
};

/// Zeroes once the bytes are used up.
class ByteChoices final : public Choices {
 public:
  ByteChoices(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}
  std::uint64_t below(std::uint64_t count) override {
    std::uint64_t value = 0;
    for (std::uint64_t most = count - 1; most > 0 && at_ != end_; most >>= 8) {
      value = value << 8 | *at_++;
    }
    return value % count;
  }
  bool exhausted() const { return at_ == end_; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace fragshim::model
