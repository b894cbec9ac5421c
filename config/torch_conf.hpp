// Which conf string is the user's, now that the shim hands PyTorch another in its place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/environment.hpp"

namespace fragshim {

/// A conf string and the variable it stands in.
struct ConfSource {
  std::string text;
  std::string variable;  // empty: none is set
};

/// The conf string as the user wrote it: of FRAGSHIM_CONF, PYTORCH_CUDA_ALLOC_CONF and
/// PYTORCH_ALLOC_CONF the first that is set, even if empty. A PyTorch variable that holds what the
/// shim of this process or of a parent has put there (FRAGSHIM_HANDED_CONF) counts as what it was
/// before: FRAGSHIM_TORCH_CONF, where it is the variable that was taken from
/// (FRAGSHIM_TORCH_CONF_SOURCE; PYTORCH_CUDA_ALLOC_CONF where that is not set), else not set.
ConfSource original_conf(const Environment& environment);

/// A variable to be set, or to be removed where it has no value.
struct VariableChange {
  std::string name;
  std::optional<std::string> value;
};

/// What must change in the environment so that PyTorch reads `handed` while this process and its
/// children still find the user's own conf string. Doing it twice changes nothing more.
std::vector<VariableChange> hand_over(const Environment& environment, std::string_view handed);

}  // namespace fragshim
