// What the environment asks of the stand-in driver.
//
// STANDIN_MEMORY=SIZE        memory of each device: bytes, or with KiB, MiB, GiB (8GiB)
// STANDIN_DEVICES=N          how many devices there are (1)
// STANDIN_VERSION=V          the driver's version as cuDriverGetVersion gives it (13000); entries
//                            that came later are not found by look-ups
// STANDIN_VIRTUAL=0          no virtual memory management: its attribute is 0, its calls are not
//                            supported
// STANDIN_AUTO=1             work completes as it is submitted, unless it waits for the host
// STANDIN_DELAY_MS=N         work that old completes when something is queried (0: only when
//                            somebody waits for it)
// STANDIN_FAIL=RULE,...      NAME:NTH[:CODE] fails the NTH call of an entry (`*`: of any), once;
//                            NAME:every:K[:CODE] every Kth one. CODE is a CUresult (2)
// STANDIN_REENTER=1          cuInit looks the driver's entries up by dlsym and calls them as others
//                            see them, before and after the driver is initialised
// STANDIN_LOG_LOOKUPS=FILE   one line a look-up: name, version, flags, which cuGetProcAddress,
//                            and the exported symbol it led to, or -
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace standin {

struct FailRule {
  std::string entry;        // its exported name; `*`: any
  unsigned long long at;    // the call that fails next
  unsigned long long step;  // then every so many; 0: once
  int code;
};

struct Settings {
  fragshim::Bytes memory = 8 * fragshim::GiB;
  int devices = 1;
  int version = 13000;
  bool virtual_memory = true;
  bool automatic = false;
  bool reenter = false;
  std::chrono::milliseconds delay{0};
  std::vector<FailRule> failures;
  std::string lookup_log;
};

/// The settings, read from the environment at the first call.
const Settings& settings();

/// Reads a size; false where it is none.
bool parse_size(const char* text, fragshim::Bytes* out);
/// Reads rules as in STANDIN_FAIL; false where one is malformed.
bool parse_failures(const std::string& text, std::vector<FailRule>* out);

/// The version of the driver that this library was built to be.
extern const int built_version;

}  // namespace standin
