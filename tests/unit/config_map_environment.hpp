// An environment made up by a test.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "config/environment.hpp"

class MapEnvironment final : public fragshim::Environment {
 public:
  MapEnvironment(std::initializer_list<std::pair<const std::string, std::string>> variables)
      : variables_(variables) {}

  std::optional<std::string> get(const char* name) const override {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return std::nullopt;
    return found->second;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    for (const auto& [name, value] : variables_) result.push_back(name);
    return result;
  }

  void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      variables_[name] = *value;
    } else {
      variables_.erase(name);
    }
  }

 private:
  std::map<std::string, std::string> variables_;
};
