#include "config/problem.hpp"

#include <cstddef>

namespace fragshim {
namespace {

// Quoted, fit for one line.
std::string quoted(const std::string& text) {
  constexpr std::size_t longest_shown = 200;
  const bool cut = text.size() > longest_shown;
  return "'" + printable(text.substr(0, longest_shown)) + (cut ? "..." : "") + "'";
}

}  // namespace

std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return text;
}

std::string Problem::line() const {
  std::string line = "fragshim: ";
  if (unknown && key.empty()) {
    line += "unknown variable " + quoted(where);
  } else if (unknown) {
    line += where + ": unknown key " + quoted(key);
  } else {
    line += where + ": ";
    if (!key.empty()) line += key + ": ";
    line += "bad value " + quoted(value) + "; allowed: " + allowed;
  }
  if (!suggestion.empty()) line += "; did you mean " + quoted(suggestion) + "?";
  return line;
}

}  // namespace fragshim
