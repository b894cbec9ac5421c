// Where variables are read from: the process, or what a test made up.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fragshim {

class Environment {
 public:
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  virtual ~Environment() = default;

  /// The variable's value; nothing where it is not set (set and empty is a value).
  virtual std::optional<std::string> get(const char* name) const = 0;
  /// The names of all variables, in no particular order.
  virtual std::vector<std::string> names() const = 0;
};

/// The environment of this process.
class ProcessEnvironment final : public Environment {
 public:
  std::optional<std::string> get(const char* name) const override;
  std::vector<std::string> names() const override;
};

}  // namespace fragshim
