#include "core/analyze/pickle_parser.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>

#include "core/analyze/input_error.hpp"

namespace fragshim {

namespace {

/// The opcodes that make data, by Python's names for them.
enum Opcode : unsigned char {
  proto = 0x80,
  frame = 0x95,
  stop = '.',
  mark = '(',
  pop_one = '0',
  pop_mark = '1',
  dup = '2',
  none = 'N',
  newtrue = 0x88,
  newfalse = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  long4 = 0x8b,
  binfloat = 'G',
  binunicode = 'X',
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  binstring = 'T',
  short_binstring = 'U',
  binbytes = 'B',
  short_binbytes = 'C',
  binbytes8 = 0x8e,
  bytearray8 = 0x96,
  empty_list = ']',
  append = 'a',
  appends = 'e',
  list = 'l',
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  empty_dict = '}',
  dict = 'd',
  setitem = 's',
  setitems = 'u',
  binput = 'q',
  long_binput = 'r',
  memoize = 0x94,
  binget = 'h',
  long_binget = 'j',
};

struct Refused {
  unsigned char opcode;
  const char* name;
};

/// Those that name code, call it, or leave it to the reader what they mean.
constexpr Refused refused[] = {
    {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},  {'b', "BUILD"},
    {'i', "INST"},      {'o', "OBJ"},           {0x81, "NEWOBJ"}, {0x92, "NEWOBJ_EX"},
    {0x82, "EXT1"},     {0x83, "EXT2"},         {0x84, "EXT4"},   {'P', "PERSID"},
    {'Q', "BINPERSID"}, {0x97, "NEXT_BUFFER"},
};

}  // namespace

void PickleParser::run() {
  read_protocol();
  for (;;) {
    const auto opcode = static_cast<unsigned char>(take_unsigned(1));
    if (opcode == stop) break;
    if (!run_number(opcode) && !run_text(opcode) && !run_container(opcode) && !run_memo(opcode) &&
        !run_stack(opcode)) {
      refuse(opcode);
    }
  }
  data_.root_ = pop();
}

void PickleParser::read_protocol() {
  if (take_unsigned(1) != proto) fail("not a pickle of protocol 2 or later");
  const std::uint64_t version = take_unsigned(1);
  if (version < 2 || version > 5) fail("pickle protocol " + std::to_string(version));
}

bool PickleParser::run_number(unsigned char opcode) {
  switch (opcode) {
    case none:
      push({});
      return true;
    case newtrue:
    case newfalse:
      push_integer(opcode == newtrue ? 1 : 0, Kind::boolean);
      return true;
    case binint:
      push_integer(static_cast<std::int32_t>(take_unsigned(4)));
      return true;
    case binint1:
      push_integer(static_cast<std::int64_t>(take_unsigned(1)));
      return true;
    case binint2:
      push_integer(static_cast<std::int64_t>(take_unsigned(2)));
      return true;
    case long1:
      push_integer(take_long(take_unsigned(1)));
      return true;
    case long4:
      push_integer(take_long(take_unsigned(4)));
      return true;
    case binfloat: {
      Value value;
      value.kind = Kind::real;
      value.real = take_real();
      push(value);
      return true;
    }
    default:
      return false;
  }
}

bool PickleParser::run_text(unsigned char opcode) {
  switch (opcode) {
    case short_binunicode:
    case short_binstring:
      push_text(take_unsigned(1));
      return true;
    case binunicode:
    case binstring:
      push_text(take_unsigned(4));
      return true;
    case binunicode8:
      push_text(take_unsigned(8));
      return true;
    case short_binbytes:
      push_text(take_unsigned(1), Kind::bytes);
      return true;
    case binbytes:
      push_text(take_unsigned(4), Kind::bytes);
      return true;
    case binbytes8:
    case bytearray8:
      push_text(take_unsigned(8), Kind::bytes);
      return true;
    default:
      return false;
  }
}

bool PickleParser::run_container(unsigned char opcode) {
  switch (opcode) {
    case empty_list:
    case empty_tuple:
    case empty_dict:
      push_container(opcode == empty_list    ? Kind::list
                     : opcode == empty_tuple ? Kind::tuple
                                             : Kind::dict,
                     {});
      return true;
    case list:
      push_container(Kind::list, pop_to_mark());
      return true;
    case tuple:
      push_container(Kind::tuple, pop_to_mark());
      return true;
    case tuple1:
    case tuple2:
    case tuple3: {
      std::vector<Id> items(opcode - tuple1 + 1u);
      for (auto item = items.rbegin(); item != items.rend(); ++item) *item = pop();
      push_container(Kind::tuple, std::move(items));
      return true;
    }
    case dict: {
      std::vector<Id> items = pop_to_mark();
      push_container(Kind::dict, {});
      extend(std::move(items), Kind::dict);
      return true;
    }
    case append:
      extend({pop()}, Kind::list);
      return true;
    case appends:
      extend(pop_to_mark(), Kind::list);
      return true;
    case setitem: {
      const Id value = pop();
      const Id key = pop();
      extend({key, value}, Kind::dict);
      return true;
    }
    case setitems:
      extend(pop_to_mark(), Kind::dict);
      return true;
    default:
      return false;
  }
}

bool PickleParser::run_memo(unsigned char opcode) {
  switch (opcode) {
    case binput:
      put(take_unsigned(1));
      return true;
    case long_binput:
      put(take_unsigned(4));
      return true;
    case memoize:
      put(memoized_);
      return true;
    case binget:
      get(take_unsigned(1));
      return true;
    case long_binget:
      get(take_unsigned(4));
      return true;
    default:
      return false;
  }
}

bool PickleParser::run_stack(unsigned char opcode) {
  switch (opcode) {
    case frame:  // how much to read at once: all is here already
      take_unsigned(8);
      return true;
    case mark:
      if (marks_.size() == limits_.depth) fail("nested too deeply");
      marks_.push_back(stack_.size());
      return true;
    case pop_one:
      pop();
      return true;
    case pop_mark:
      pop_to_mark();
      return true;
    case dup:
      stack_.push_back(top());
      return true;
    default:
      return false;
  }
}

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

void PickleParser::refuse(unsigned char opcode) const {
  for (const Refused& one : refused) {
    if (one.opcode != opcode) continue;
    fail(std::string("it names or calls code (opcode ") + one.name +
         "); fragshim reads plain data alone, and runs nothing");
  }
  char text[40];
  std::snprintf(text, sizeof text, "unknown pickle opcode 0x%02x", opcode);
  fail(text);
}

void PickleParser::fail(const std::string& what) const {
  throw InputError(data_.name() + ": at byte " + std::to_string(data_.bytes_ - rest_.size()) +
                   ": " + what);
}

}  // namespace fragshim
