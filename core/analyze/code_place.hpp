// The one line of a stack that its reader will know.
#pragma once

#include <string>
#include <vector>

#include "core/analyze/event_source.hpp"

namespace fragshim {

/// "FILE:LINE FUNCTION" of the innermost frame that is neither PyTorch's nor compiled code; where
/// all are, of the innermost with a file. Empty for an empty stack.
std::string code_place(const std::vector<CodeFrame>& stack);

}  // namespace fragshim
