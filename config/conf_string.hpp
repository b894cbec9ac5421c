// The conf string: PyTorch's allocator options, by PyTorch's own grammar, and fragshim's two.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/allocation_config.hpp"
#include "config/problem.hpp"

namespace fragshim {

enum class Backend : std::uint8_t { unset, native, cuda_malloc_async };

/// One key of a conf string whose value was taken.
struct ConfSetting {
  std::string key;
  std::string raw;    // as given, without whitespace
  std::string value;  // what is in force: "100" for "100MB"
};

/// What a conf string says.
struct ConfString {
  AllocationConfig allocation;
  Backend backend = Backend::unset;
  std::vector<ConfSetting> settings;   // all keys with a good value, in the order given; of
                                       // equal keys the last is in force
  std::vector<std::string> host_side;  // keys seen that do not concern the shim, in order
  std::vector<Problem> problems;
};

/// Reads `text`. A key with a bad value has its default and a Problem; the other keys count.
/// `where` is the variable or flag named in the problems.
ConfString parse_conf(std::string_view text, std::string_view where = "FRAGSHIM_CONF");

}  // namespace fragshim
