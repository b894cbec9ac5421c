#include "config/parse_size.hpp"

#include <charconv>
#include <cstddef>

namespace fragshim {
namespace {

bool equal_ignoring_case(std::string_view text, std::string_view lower_case) {
  if (text.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != lower_case[i]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> parse_integer(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  struct Suffix {
    std::string_view name;
    int shift;
  };
  constexpr Suffix suffixes[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  int shift = 0;
  for (const Suffix& suffix : suffixes) {
    if (text.size() > suffix.name.size() && text.ends_with(suffix.name)) {
      text.remove_suffix(suffix.name.size());
      shift = suffix.shift;
      break;
    }
  }
  const auto value = parse_integer(text);
  if (!value || *value > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return *value << shift;
}

std::optional<bool> parse_boolean(std::string_view text) {
  for (const std::string_view word : {"1", "on", "true", "yes"}) {
    if (equal_ignoring_case(text, word)) return true;
  }
  for (const std::string_view word : {"0", "off", "false", "no"}) {
    if (equal_ignoring_case(text, word)) return false;
  }
  return std::nullopt;
}

}  // namespace fragshim
