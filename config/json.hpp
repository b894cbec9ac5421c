// JSON written by hand, without a library: escaping, and a writer that knows where commas go.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace fragshim {

/// Appends `text` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// Writes one JSON value on one line: nested objects and arrays, commas by itself.
///   JsonWriter json(line);
///   json.begin_object().key("type").value("oom").key("bytes").value(std::uint64_t{512});
///   json.end_object();
class JsonWriter {
 public:
  /// Appends to `out`, which must outlive the writer.
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  template <std::integral Number>
  JsonWriter& value(Number number) {
    if constexpr (std::same_as<Number, bool>) {
      return raw(number ? "true" : "false");
    } else if constexpr (std::signed_integral<Number>) {
      return signed_value(number);
    } else {
      return unsigned_value(number);
    }
  }
  /// Rounded to 6 decimals, in its shortest form; what is not finite is written as null.
  JsonWriter& value(double number);
  JsonWriter& null();
  /// A value that is JSON already.
  JsonWriter& raw(std::string_view json);

  /// key and value in one.
  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& content) {
    return key(name).value(content);
  }

 private:
  void comma();
  JsonWriter& signed_value(std::int64_t number);
  JsonWriter& unsigned_value(std::uint64_t number);

  std::string& out_;
  bool first_ = true;  // nothing written yet in the innermost object or array, or after a key
};

}  // namespace fragshim
