// The parser's input, stack and memo: what its opcodes work with, and where every bound is kept.
#include <algorithm>
#include <bit>

#include "core/analyze/input_error.hpp"
#include "core/analyze/pickle_parser.hpp"

namespace fragshim {

std::string_view PickleParser::take(std::uint64_t count) {
  if (count > rest_.size()) fail("cut off");
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

std::uint64_t PickleParser::take_unsigned(std::size_t bytes) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const char c : take(bytes)) {
    value |= std::uint64_t{static_cast<unsigned char>(c)} << shift;
    shift += 8;
  }
  return value;
}

/// Two's complement, little endian. Nine bytes hold an unsigned number of 64 bits.
std::int64_t PickleParser::take_long(std::uint64_t bytes) {
  if (bytes > 9) fail("an integer of more than 64 bits");
  const std::uint64_t value = take_unsigned(std::min<std::uint64_t>(bytes, 8));
  if (bytes == 9 && take_unsigned(1) != 0) fail("an integer of more than 64 bits");
  if (bytes == 0 || bytes >= 8) return static_cast<std::int64_t>(value);
  const int unused = 64 - 8 * static_cast<int>(bytes);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

double PickleParser::take_real() {
  std::uint64_t bits = 0;
  for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
  return std::bit_cast<double>(bits);
}

void PickleParser::push(Value value) {
  if (data_.values_.size() >= std::min<std::size_t>(limits_.values, no_value)) {
    fail("more than " + std::to_string(limits_.values) + " values");
  }
  stack_.push_back(static_cast<Id>(data_.values_.size()));
  data_.values_.push_back(value);
}

void PickleParser::push_integer(std::int64_t number, Kind kind) {
  Value value;
  value.kind = kind;
  value.integer = number;
  push(value);
}

void PickleParser::push_text(std::uint64_t size, Kind kind) {
  const std::string_view text = take(size);
  Value value;
  value.kind = kind;
  value.text = {text.data(), text.size()};
  push(value);
}

void PickleParser::push_container(Kind kind, std::vector<Id> items) {
  Value value;
  value.kind = kind;
  value.items = data_.items_.size();
  push(value);
  data_.items_.push_back(std::move(items));
}

PickleParser::Id PickleParser::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("nothing on its stack");
  return stack_.back();
}

PickleParser::Id PickleParser::pop() {
  const Id id = top();
  stack_.pop_back();
  return id;
}

std::vector<PickleParser::Id> PickleParser::pop_to_mark() {
  if (marks_.empty()) fail("nothing on its stack");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  marks_.pop_back();
  std::vector<Id> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  return items;
}

void PickleParser::extend(std::vector<Id> items, Kind kind) {
  const Id id = top();
  if (data_.kind(id) != kind) fail("items for what does not hold any");
  if (kind == Kind::dict && items.size() % 2 != 0) fail("a key without a value");
  std::vector<Id>& all = data_.items_[data_.values_[id].items];
  if (all.empty()) {
    all = std::move(items);
  } else {
    all.insert(all.end(), items.begin(), items.end());
  }
}

void PickleParser::put(std::uint64_t index) {
  if (index > data_.bytes_) fail("a memo out of bounds");  // every entry takes a byte at least
  if (index >= memo_.size())
    memo_.resize(std::max(index + 1, 2 * std::uint64_t{memo_.size()}), no_value);
  if (memo_[index] == no_value) ++memoized_;
  memo_[index] = top();
}

void PickleParser::get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[index] == no_value) fail("a memo that was never made");
  stack_.push_back(memo_[index]);
}

void PickleParser::fail(const std::string& what) const {
  throw InputError(data_.name() + ": at byte " + std::to_string(data_.bytes_ - rest_.size()) +
                   ": " + what);
}

}  // namespace fragshim
