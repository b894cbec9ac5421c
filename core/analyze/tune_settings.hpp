// The settings that tune tries.
#pragma once

#include <string>
#include <vector>

#include "config/allocation_config.hpp"
#include "core/types.hpp"

namespace fragshim {

/// Whose setting it is: what PyTorch's own allocator takes, or fragshim's.
enum class TunedAllocator : std::uint8_t { pytorch, fragshim };

/// One setting to try.
struct TuneSetting {
  TunedAllocator allocator = TunedAllocator::pytorch;
  std::string conf;  // as the variable or --conf takes it; empty: the default
  AllocationConfig config;
  PolicyKind policy = PolicyKind::native;
};

/// All settings to try, of each allocator from the simple and mild to the complicated, its default
/// first. `capacity` is what the process may take: split limits are tried around a sixth of it, as
/// people do. `limited`: it is a real limit, so that garbage collection can act.
std::vector<TuneSetting> tune_settings(Bytes capacity, bool limited);

}  // namespace fragshim
