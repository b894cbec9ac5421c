// What is wrong with a value somebody gave, told in one line that says what would be right.
#pragma once

#include <string>

namespace fragshim {

/// A value that was not taken, or a name that is not known.
struct Problem {
  std::string where;       // the variable or flag it stood in: "FRAGSHIM_CONF", "--mode"
  std::string key;         // a key inside a conf string; empty where `where` itself has the value
  std::string value;       // as given; empty with `unknown` where no value was looked at
  std::string allowed;     // what would be right; empty with `unknown`
  std::string suggestion;  // the likely spelling; empty: none is near
  bool unknown = false;    // the name (key, or where without key) is not known at all

  /// "fragshim: WHERE: KEY: bad value 'VALUE'; allowed: ALLOWED; did you mean 'SUGGESTION'?",
  /// without a line end; "WHERE: unknown key 'KEY'" or "unknown variable 'WHERE'" where `unknown`.
  /// Control characters are shown as '?', a value longer than 200 bytes is cut.
  std::string line() const;
};

/// `text` with its control characters as '?': a line stays a line, a terminal stays sane.
std::string printable(std::string text);

}  // namespace fragshim
