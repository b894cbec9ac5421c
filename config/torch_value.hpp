// Values as PyTorch's options take them: leniently, like std::stoull and std::stod.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragshim::torch_value {

/// As std::stoull: leading digits count ("100MB" is 100, "128.5" is 128), "-5" wraps around.
/// Nothing where std::stoull would throw.
std::optional<std::uint64_t> whole_number(const std::string& text);

/// As std::stod in the C locale. Nothing where std::stod would throw.
std::optional<double> number(const std::string& text);

/// "True" or "False", nothing else.
std::optional<bool> truth(const std::string& text);

/// The tokens of a conf string: , : [ ] stand alone, whitespace is dropped wherever it is.
std::vector<std::string> tokens(std::string_view text);

/// True for the four tokens that separate others.
bool is_separator(std::string_view token);

}  // namespace fragshim::torch_value
