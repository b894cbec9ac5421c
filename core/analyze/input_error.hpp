// What readers throw at input that cannot be read.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace fragshim {

/// One line for the user: which file, where in it, what is wrong and what would be right.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// "FILE:LINE: what".
  InputError(const std::string& file, std::uint64_t line, const std::string& what)
      : InputError(file + ":" + std::to_string(line) + ": " + what) {}
};

}  // namespace fragshim
