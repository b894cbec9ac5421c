#include "config/torch_value.hpp"

#include <locale.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace fragshim::torch_value {
namespace {

constexpr std::string_view separators = ",:[]";
constexpr std::string_view whitespace = " \t\n\v\f\r";

}  // namespace

std::optional<std::uint64_t> whole_number(const std::string& text) {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str() || errno == ERANGE) return std::nullopt;
  return value;
}

std::optional<double> number(const std::string& text) {
  // A program may have set a locale in which "0.8" reads as 0.
  const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  if (!c_locale) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double value = strtod_l(text.c_str(), &end, c_locale);
  const bool good = end != text.c_str() && errno != ERANGE;
  freelocale(c_locale);
  return good ? std::optional(value) : std::nullopt;
}

std::optional<bool> truth(const std::string& text) {
  if (text == "True") return true;
  if (text == "False") return false;
  return std::nullopt;
}

std::vector<std::string> tokens(std::string_view text) {
  std::vector<std::string> result;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) result.push_back(std::exchange(word, {}));
  };
  for (const char c : text) {
    if (separators.find(c) != std::string_view::npos) {
      end_word();
      result.emplace_back(1, c);
    } else if (whitespace.find(c) == std::string_view::npos) {
      word += c;
    }
  }
  end_word();
  return result;
}

bool is_separator(std::string_view token) {
  return token.size() == 1 && separators.find(token.front()) != std::string_view::npos;
}

}  // namespace fragshim::torch_value
