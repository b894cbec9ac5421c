#include "config/json.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace fragshim {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// The length of the well-formed UTF-8 sequence `text` begins with, as Unicode's table 3-7 has it;
// 0 where there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !continues(1)) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) {
    const bool overlong = lead == 0xE0 && second < 0xA0;
    const bool surrogate = lead == 0xED && second > 0x9F;
    return !overlong && !surrogate && continues(2) ? 3 : 0;
  }
  const bool overlong = lead == 0xF0 && second < 0x90;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  return !overlong && !too_large && continues(2) && continues(3) ? 4 : 0;
}

void append_control(std::string& out, unsigned char c) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default: {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
    }
  }
}

template <typename Number>
void append_number(std::string& out, Number number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  out.append(text, end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    std::size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (c < 0x20) {
      append_control(out, c);
    } else if ((length = utf8_length(text)) != 0) {
      out += text.substr(0, length);
    } else {
      out += replacement;
      length = 1;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void JsonWriter::comma() {
  if (!first_) out_ += ',';
  first_ = false;
}

JsonWriter& JsonWriter::begin_object() {
  comma();
  out_ += '{';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  out_ += '}';
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  comma();
  out_ += '[';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  out_ += ']';
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  comma();
  append_json_string(out_, name);
  out_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  comma();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::unsigned_value(std::uint64_t number) {
  comma();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::signed_value(std::int64_t number) {
  comma();
  append_number(out_, number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  // Six decimals are enough for every ratio we write, and exact for every count of bytes.
  constexpr double largest_with_decimals = 1e15;
  if (std::fabs(number) < largest_with_decimals) number = std::round(number * 1e6) / 1e6;
  comma();
  append_number(out_, number == 0 ? 0.0 : number);  // no "-0"
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  comma();
  out_ += json;
  return *this;
}

}  // namespace fragshim
