// Runs a program in an environment and a folder of its own and says what came of it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fragshim::test {

using Variables = std::map<std::string, std::string>;

struct Outcome {
  int code = -1;                   // exit code; 128 + signal where a signal ended it
  std::string output;              // stdout
  std::string errors;              // stderr
  std::vector<std::string> files;  // what lay in its (at first empty) working folder afterwards
};

/// Runs `command` (found by PATH) with just these variables, PATH and a sanitizer's options, stdin
/// empty. A program that runs for more than 60 seconds is killed.
Outcome run(const std::vector<std::string>& command, const Variables& variables = {});

/// The same with libfragshim.so preloaded, in front of what LD_PRELOAD there may be in `variables`.
Outcome run_preloaded(const std::vector<std::string>& command, Variables variables = {});

/// The library under test.
std::string library();
/// LD_PRELOAD for these libraries, in this order; in a sanitizer's build behind its runtime.
std::string preload_list(const std::vector<std::string>& libraries = {library()});
/// A program or library of this test, by file name.
std::string probe(const std::string& name);
/// The stand-in driver's folder; empty where it was not built.
std::string standin_folder();

/// The lines of a text, without line ends.
std::vector<std::string> lines(const std::string& text);
/// The names of FRAGSHIM_HOOKED, sorted.
std::vector<std::string> hooked_names();

}  // namespace fragshim::test
