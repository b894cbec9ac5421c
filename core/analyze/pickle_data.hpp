// Python's pickle, as data: numbers, text, lists, tuples and dictionaries, and nothing that runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/analyze/byte_stream.hpp"

namespace fragshim {

/// Bounds on what is read; what is beyond them is refused.
struct PickleLimits {
  std::size_t bytes = std::size_t{1} << 33;   // of the unpacked file
  std::size_t values = std::size_t{1} << 31;  // numbers, texts, lists … in all
  std::size_t depth = 1000;                   // lists begun and not ended yet
};

/// What a pickle holds, kept as values that refer to each other by number. A value may be part of
/// several others (or, in a crafted file, of itself): walk it by what you expect, not to its end.
class PickleData {
 public:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, bytes, list, tuple, dict };

  /// Reads protocols 2 to 5. Opcodes that name or call code are refused, never followed. Throws
  /// InputError.
  static PickleData read(ByteStream input, const PickleLimits& limits = {});

  Id root() const { return root_; }
  Kind kind(Id id) const { return values_[id].kind; }
  bool is_sequence(Id id) const { return kind(id) == Kind::list || kind(id) == Kind::tuple; }

  /// Nothing where the value is of another kind.
  std::optional<std::int64_t> integer(Id id) const;
  std::optional<std::string_view> text(Id id) const;
  std::optional<bool> boolean(Id id) const;
  /// An integer or real.
  std::optional<double> number(Id id) const;
  /// The items of a list or tuple; of a dictionary its keys and values by turns; else none.
  std::span<const Id> items(Id id) const;
  /// The value of a text key in a dictionary; nothing where it has none, or is no dictionary.
  std::optional<Id> find(Id dict, std::string_view key) const;

  const std::string& name() const { return input_.name(); }
  /// How large the unpacked file is.
  std::size_t bytes() const { return bytes_; }

 private:
  friend class PickleParser;

  struct Text {
    const char* data;
    std::size_t size;
  };
  struct Value {
    Kind kind = Kind::none;
    union {
      std::int64_t integer = 0;
      double real;
      Text text;
      std::size_t items;  // index into items_
    };
  };

  explicit PickleData(ByteStream input) : input_(std::move(input)) {}

  ByteStream input_;  // holds the texts
  std::size_t bytes_ = 0;
  std::vector<Value> values_;
  std::vector<std::vector<Id>> items_;
  Id root_ = 0;
};

}  // namespace fragshim
