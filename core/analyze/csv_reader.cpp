#include "core/analyze/csv_reader.hpp"

#include <algorithm>

#include "core/analyze/csv_fields.hpp"
#include "core/analyze/input_error.hpp"

namespace fragshim {

namespace {

constexpr std::int64_t day_ns = 86'400'000'000'000;
// Centuries of midnights: soon beyond them, nanoseconds overflow.
constexpr std::int64_t most_midnights_ns = 100'000 * day_ns;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// As much of a line as a message should quote, on one line of a terminal.
std::string quoted(std::string_view line) {
  constexpr std::size_t most = 80;
  std::string text(line.substr(0, most));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return "'" + text + (line.size() > most ? "...'" : "'");
}

}  // namespace

CsvReader::CsvReader(ByteStream input) : lines_(std::move(input)) { read_header(); }

void CsvReader::read_header() {
  std::string_view line;
  while (lines_.next(&line) && trimmed(line).empty()) {
  }
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // a byte order mark
  const std::size_t count = split(line);
  for (std::size_t column = 0; column < columns; ++column) {
    const auto end = fields_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto found = std::find(fields_.begin(), end, names[column]);
    place_[column] = found == end ? absent : static_cast<std::size_t>(found - fields_.begin());
    if (found != end) needed_ = std::max(needed_, place_[column] + 1);
  }
  for (const Column column : {action, pointer, size}) {
    if (place_[column] != absent) continue;
    throw InputError(lines_.name(), std::max<std::uint64_t>(lines_.number(), 1),
                     "no column '" + std::string(names[column]) + "' in the header " +
                         quoted(line) + "; expected Thread,Time,Action,Pointer,Size,Stream");
  }
}

/// Fills `fields_` from a line; returns how many there are, at most most_fields.
std::size_t CsvReader::split(std::string_view line) {
  std::size_t count = 0;
  while (count < most_fields) {
    const std::size_t comma = line.find(',');
    fields_[count++] = trimmed(line.substr(0, comma));
    if (comma == std::string_view::npos) break;
    line.remove_prefix(comma + 1);
  }
  return count;
}

bool CsvReader::next(Event* event) {
  std::string_view line;
  while (lines_.next(&line)) {
    if (trimmed(line).empty()) continue;
    const std::size_t count = split(line);
    for (std::size_t i = count; i < needed_; ++i) fields_[i] = {};
    const Verdict verdict = parse(event);
    if (verdict.wrong == nullptr) return true;
    if (lines_.terminated()) fail(line, verdict);
    ++incomplete_;
  }
  return false;
}

CsvReader::Verdict CsvReader::parse(Event* event) {
  const auto what = action_field(field(action));
  if (!what) return {actions_allowed.data(), action};
  *event = Event{};
  event->action = *what;
  if (place_[time] != absent) {
    const auto at = time_field(field(time));
    if (!at) return {"H:M:S.fraction, perhaps after a date", time};
    event->time_ns = without_midnight(*at);
  }
  if (place_[thread] != absent) {
    const auto number = decimal_field(field(thread));
    if (!number) return {"a whole number", thread};
    event->thread = static_cast<std::uint32_t>(*number);
  }
  if (event->action == Action::trim) return {};
  const auto address = address_field(field(pointer));
  if (!address) return {"a hexadecimal address or (nil)", pointer};
  event->address = *address;
  const auto bytes = decimal_field(field(size));
  if (!bytes) return {"a whole number of bytes", size};
  event->size = *bytes;
  if (place_[stream] != absent) {
    const auto id = address_field(field(stream));
    if (!id) return {"a number or a hexadecimal handle", stream};
    event->stream = *id;
  }
  return {};
}

/// Adds the days that a clock without a date does not show. Threads log a little out of order, so
/// only a step of more than half a day is midnight: back, or, for a thread that is late, forth.
std::int64_t CsvReader::without_midnight(std::int64_t time_ns) {
  if (time_ns >= day_ns) return time_ns;
  if (midnights_ns_ > 0 && time_ns - last_time_ > day_ns / 2) {
    return time_ns + midnights_ns_ - day_ns;
  }
  if (last_time_ - time_ns > day_ns / 2 && midnights_ns_ < most_midnights_ns) {
    midnights_ns_ += day_ns;
  }
  last_time_ = time_ns;
  return time_ns + midnights_ns_;
}

void CsvReader::fail(std::string_view line, const Verdict& verdict) const {
  throw InputError(lines_.name(), lines_.number(),
                   "bad " + std::string(names[verdict.column]) + " " +
                       quoted(field(verdict.column)) + " in " + quoted(line) + "; expected " +
                       verdict.wrong);
}

}  // namespace fragshim
