#include "core/analyze/pickle_parser.hpp"

#include <cstdio>

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

}  // namespace fragshim
