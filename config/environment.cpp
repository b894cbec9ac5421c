#include "config/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace fragshim {

std::optional<std::string> ProcessEnvironment::get(const char* name) const {
  const char* const value = std::getenv(name);
  if (!value) return std::nullopt;
  return value;
}

std::vector<std::string> ProcessEnvironment::names() const {
  std::vector<std::string> result;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    result.emplace_back(text.substr(0, text.find('=')));
  }
  return result;
}

}  // namespace fragshim
