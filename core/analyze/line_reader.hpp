// A text file line by line.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "core/analyze/byte_stream.hpp"

namespace fragshim {

class LineReader {
 public:
  /// No line of a trace or log is as long; a file with one is something else.
  static constexpr std::size_t longest = 1 << 20;

  explicit LineReader(ByteStream input) : input_(std::move(input)) {}

  /// The next line without its end (LF or CR LF); false at the end. Valid until the next call.
  /// Throws InputError for a line that is too long, or what the ByteStream throws.
  bool next(std::string_view* line);

  /// The number of the line last given, from 1.
  std::uint64_t number() const { return number_; }
  /// False where the file ended in the midst of the line last given, as far as one can tell.
  bool terminated() const { return terminated_; }
  const std::string& name() const { return input_.name(); }

 private:
  ByteStream input_;
  std::string_view rest_;  // peeked and not handed out yet
  std::size_t taken_ = 0;  // handed out of what was peeked
  std::uint64_t number_ = 0;
  bool terminated_ = true;
};

}  // namespace fragshim
