#include "config/spelling.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace fragshim {
namespace {

// Longer than any name we know; keeps the cost of a garbage name small.
constexpr std::size_t longest_name = 128;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

// Optimal string alignment: insert, delete, replace, or swap two neighbours. Neither is longer than
// longest_name.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, longest_name + 1>;
  Row before_last{}, last{}, row{};
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

bool one_begins_the_other(std::string_view a, std::string_view b) {
  const std::size_t length = std::min(a.size(), b.size());
  return length >= 3 && a.substr(0, length) == b.substr(0, length);
}

}  // namespace

std::string_view nearest_spelling(std::string_view given,
                                  const std::vector<std::string_view>& candidates) {
  if (given.empty() || given.size() > longest_name) return {};
  const std::string wanted = lowered(given);
  const std::size_t tolerance = std::max<std::size_t>(1, wanted.size() / 3);
  std::string_view best;
  std::size_t best_distance = ~std::size_t{0};
  for (const std::string_view candidate : candidates) {
    const std::string name = lowered(candidate);
    const bool begins = one_begins_the_other(wanted, name);
    const std::size_t longer = std::max(wanted.size(), name.size());
    const std::size_t least_distance = longer - std::min(wanted.size(), name.size());
    if (longer > longest_name || (!begins && least_distance > tolerance)) continue;
    const std::size_t distance = edit_distance(wanted, name);
    const bool near = distance < name.size() && distance <= tolerance;
    if ((near || begins) && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string_view nearest_choice(const Option& option, std::string_view given) {
  if (option.kind != OptionKind::choice && option.kind != OptionKind::boolean) return {};
  std::vector<std::string_view> choices;
  for_each_choice(option.allowed, [&](std::string_view choice) { choices.push_back(choice); });
  return nearest_spelling(given, choices);
}

}  // namespace fragshim
