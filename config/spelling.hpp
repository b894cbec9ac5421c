// The likely spelling of a name that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fragshim {

/// The candidate nearest to `given` by edit distance (letters of either case alike, neighbouring
/// letters swapped count as one edit), or empty where none is near: a third of the letters may be
/// wrong, or one is the beginning of the other. Of equally near ones the first.
std::string_view nearest_spelling(std::string_view given,
                                  const std::vector<std::string_view>& candidates);

}  // namespace fragshim
