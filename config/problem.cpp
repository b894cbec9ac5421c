#include "config/problem.hpp"

namespace fragshim {
namespace {

// A line stays a line and a terminal stays sane whatever a variable contains.
std::string printable(const std::string& text) {
  constexpr std::size_t longest_shown = 200;
  std::string shown = text.substr(0, longest_shown);
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  if (text.size() > longest_shown) shown += "...";
  return shown;
}

}  // namespace

std::string Problem::line() const {
  std::string line = "fragshim: ";
  if (unknown) {
    if (key.empty()) {
      line += "unknown variable '" + printable(where) + "'";
    } else {
      line += where + ": unknown key '" + printable(key) + "'";
    }
  } else {
    line += where + ": ";
    if (!key.empty()) line += key + ": ";
    line += "bad value '" + printable(value) + "'; allowed: " + allowed;
  }
  if (!suggestion.empty()) line += "; did you mean '" + printable(suggestion) + "'?";
  return line;
}

}  // namespace fragshim
