#include "core/analyze/csv_fields.hpp"

#include <charconv>

namespace fragshim {

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t seconds_a_day = 86'400;

/// The whole of `text` as a number.
std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// `text` cut after its first `separator`: the front is given, the rest stays.
std::string_view cut(std::string_view* text, std::string_view separators) {
  const std::size_t end = text->find_first_of(separators);
  const std::string_view front = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return front;
}

/// A number of one to `digits` digits, at most `most`.
std::optional<std::int64_t> part(std::string_view text, std::size_t digits, std::uint64_t most) {
  if (text.size() > digits) return std::nullopt;
  const auto value = number(text, 10);
  if (!value || *value > most) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// Days from the epoch to a date of the Gregorian calendar.
std::int64_t days_from_epoch(std::int64_t year, std::int64_t month, std::int64_t day) {
  // Years begin in March here, so that the leap day is the last of its year.
  const std::int64_t y = month > 2 ? year : year - 1;
  const std::int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719'468;
}

// Nanoseconds since the epoch reach from 1677 to 2262; no log is older than the epoch.
constexpr std::int64_t first_year = 1970;
constexpr std::int64_t last_year = 2261;

std::optional<std::int64_t> date_in_days(std::string_view text) {
  const auto year = part(cut(&text, "-"), 4, 9999);
  const auto month = part(cut(&text, "-"), 2, 12);
  const auto day = part(text, 2, 31);
  if (!year || !month || !day || *month == 0 || *day == 0) return std::nullopt;
  if (*year < first_year || *year > last_year) return std::nullopt;
  return days_from_epoch(*year, *month, *day);
}

/// The digits after the point, as nanoseconds; what is finer is left out.
std::optional<std::int64_t> fraction_in_ns(std::string_view text) {
  if (text.empty()) return 0;
  const std::string_view used = text.substr(0, 9);
  auto value = number(used, 10);
  if (!value || !number(text.substr(used.size() - 1), 10)) return std::nullopt;
  for (std::size_t i = used.size(); i < 9; ++i) *value *= 10;
  return static_cast<std::int64_t>(*value);
}

}  // namespace

std::optional<std::uint64_t> decimal_field(std::string_view text) { return number(text, 10); }

std::optional<std::uint64_t> address_field(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) return number(text.substr(2), 16);
  if (text == "(nil)") return 0;
  return number(text, 10);
}

std::optional<std::int64_t> time_field(std::string_view text) {
  std::int64_t days = 0;
  if (text.size() > 10 && (text[10] == ' ' || text[10] == 'T')) {
    const auto date = date_in_days(text.substr(0, 10));
    if (!date) return std::nullopt;
    days = *date;
    text.remove_prefix(11);
  }
  const auto hour = part(cut(&text, ":"), 2, 23);
  const auto minute = part(cut(&text, ":"), 2, 59);
  const auto seconds = part(cut(&text, ".:"), 2, 60);
  const auto fraction = fraction_in_ns(text);
  if (!hour || !minute || !seconds || !fraction) return std::nullopt;
  return (days * seconds_a_day + *hour * 3600 + *minute * 60 + *seconds) * second + *fraction;
}

std::optional<Action> action_field(std::string_view text) {
  if (text == "allocate") return Action::allocate;
  if (text == "free") return Action::free;
  if (text == "trim") return Action::trim;
  if (text == "allocate failure") return Action::allocate_failure;
  return std::nullopt;
}

}  // namespace fragshim
