// The likely spelling of a name that is not known.
#pragma once

#include <string_view>
#include <vector>

#include "config/option_table.hpp"

namespace fragshim {

/// The candidate nearest to `given` by edit distance (letters of either case alike, neighbouring
/// letters swapped count as one edit), or empty where none is near: a third of the letters may be
/// wrong, or one is the beginning of the other. Of equally near ones the first.
std::string_view nearest_spelling(std::string_view given,
                                  const std::vector<std::string_view>& candidates);

/// The same among the choices of an option; empty where its values are not choices.
std::string_view nearest_choice(const Option& option, std::string_view given);

}  // namespace fragshim
