#include "config/roundup_list.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "config/torch_value.hpp"

namespace fragshim {
namespace {

using Tokens = std::vector<std::string>;

std::optional<std::uint64_t> number_at(const Tokens& tokens, std::size_t at) {
  if (at >= tokens.size()) return std::nullopt;
  return torch_value::whole_number(tokens[at]);
}

/// A number of divisions. No size is so large that more than 2^31 make a difference.
std::optional<std::uint32_t> divisions_at(const Tokens& tokens, std::size_t at, bool zero_allowed) {
  const auto value = number_at(tokens, at);
  if (!value || !(std::has_single_bit(*value) || (*value == 0 && zero_allowed))) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(std::min(*value, std::uint64_t{1} << 31));
}

/// The list's entries, from the token behind '[' on. True: `*last` is at its ']'.
bool read_list(const Tokens& tokens, std::size_t* last, Divisions* divisions) {
  std::size_t last_index = 0;
  bool first = true;
  std::size_t at = *last + 1;
  while (at < tokens.size() && tokens[at] != "]") {
    const auto value = divisions_at(tokens, at + 2, /*zero_allowed=*/true);
    if (!value) return false;
    if (tokens[at] == ">") {
      std::fill(divisions->begin() + last_index + 1, divisions->end(), *value);
    } else {
      const auto boundary = number_at(tokens, at);
      if (!boundary || !std::has_single_bit(*boundary)) return false;
      last_index = std::min<std::size_t>(std::bit_width(*boundary) - 1, divisions->size() - 1);
      if (first) std::fill_n(divisions->begin(), last_index, *value);
      first = false;
      (*divisions)[last_index] = *value;
    }
    at += 3;  // now at the separator or at ']'
    if (at < tokens.size() && tokens[at] != "]") ++at;
  }
  *last = at;
  return at < tokens.size();
}

}  // namespace

bool read_roundup(const Tokens& tokens, std::size_t* last, Divisions* divisions) {
  bool good = false;
  if (*last < tokens.size() && tokens[*last] == "[") {
    good = read_list(tokens, last, divisions);
  } else if (const auto value = divisions_at(tokens, *last, /*zero_allowed=*/false)) {
    divisions->fill(*value);
    good = true;
  }
  if (!good) divisions->fill(0);
  return good;
}

}  // namespace fragshim
