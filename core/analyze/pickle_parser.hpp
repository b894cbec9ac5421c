// The stack machine of a pickle, cut down to opcodes that make data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/analyze/pickle_data.hpp"

namespace fragshim {

/// Fills a PickleData from the bytes of a pickle. Throws InputError.
class PickleParser {
 public:
  /// `content` is the whole of the pickle and outlives `data`.
  PickleParser(PickleData& data, std::string_view content, const PickleLimits& limits)
      : data_(data), rest_(content), limits_(limits) {}

  void run();

 private:
  using Id = PickleData::Id;
  using Kind = PickleData::Kind;
  using Value = PickleData::Value;

  // Each carries out one opcode of its kind; false: it is none of these.
  bool run_number(unsigned char opcode);
  bool run_text(unsigned char opcode);
  bool run_container(unsigned char opcode);
  bool run_memo(unsigned char opcode);
  bool run_stack(unsigned char opcode);

  // The input.
  std::string_view take(std::uint64_t count);
  std::uint64_t take_unsigned(std::size_t bytes);
  void read_protocol();
  std::int64_t take_long(std::uint64_t bytes);
  double take_real();

  // The stack.
  void push(Value value);
  void push_integer(std::int64_t value, Kind kind = Kind::integer);
  void push_text(std::uint64_t size, Kind kind = Kind::text);
  void push_container(Kind kind, std::vector<Id> items);
  Id pop();
  Id top() const;
  std::vector<Id> pop_to_mark();
  void extend(std::vector<Id> items, Kind kind);

  void put(std::uint64_t index);
  void get(std::uint64_t index);

  [[noreturn]] void refuse(unsigned char opcode) const;
  [[noreturn]] void fail(const std::string& what) const;

  PickleData& data_;
  std::string_view rest_;
  const PickleLimits limits_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<Id> memo_;            // none yet: no_value
  std::size_t memoized_ = 0;
  static constexpr Id no_value = ~Id{0};
};

}  // namespace fragshim
