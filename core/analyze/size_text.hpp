// Sizes and names as people read them.
#pragma once

#include <string>

#include "config/allocation_config.hpp"
#include "core/types.hpp"

namespace fragshim {

/// A size with at most two decimals and the unit that suits it: "512 B", "1.50 GiB".
std::string size_text(Bytes size);

/// A share of 1 as a percentage with one decimal: "93.1%".
std::string percent_text(double share);

/// A policy's name, as --policy takes it.
const char* policy_text(PolicyKind policy);

}  // namespace fragshim
