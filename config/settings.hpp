// Everything a user can set, read once from the environment, each value with its source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/allocation_config.hpp"
#include "config/conf_string.hpp"
#include "config/environment.hpp"
#include "config/problem.hpp"
#include "config/torch_conf.hpp"

namespace fragshim {

enum class Mode : std::uint8_t { allocate, observe, off };
enum class Torch : std::uint8_t {
  hand_over,  // FRAGSHIM_TORCH=async: PyTorch allocates through the stream-ordered door
  native,     // PyTorch keeps its own allocator; the shim serves its segments
};
enum class Ipc : std::uint8_t { refuse, dedicated };

/// One option as it stands: for `fragrun config` and the log's start record.
struct EffectiveOption {
  std::string name;
  std::string value;
  std::string source;  // "default", a variable's name, or a flag: "--conf"
};

struct Settings {
  AllocationConfig allocation;
  Mode mode = Mode::allocate;
  Torch torch = Torch::hand_over;
  Ipc ipc = Ipc::refuse;
  bool strict_free = false;
  bool quiet = false;
  bool verbose = false;
  std::string log;    // a file name pattern; empty: no log
  std::string trace;  // a file name pattern; empty: no trace
  std::uint32_t log_interval_ms = 1000;

  std::string conf;         // the conf string in force, as the user wrote it
  std::string conf_source;  // the variable or flag it came from; "default" where none is set
  Backend backend = Backend::unset;    // what the conf string says of PyTorch's backend
  std::vector<std::string> host_side;  // conf keys seen that do not concern the shim

  std::vector<EffectiveOption> effective;  // one for every option of the table but internal ones
  std::vector<Problem> problems;
};

/// Reads every option. A bad value is a Problem, its default in its place; so is a FRAGSHIM_*
/// variable that is not known. Throws nothing but std::bad_alloc.
Settings load_settings(const Environment& environment);
/// The same from the environment of this process.
Settings load_settings();

}  // namespace fragshim
