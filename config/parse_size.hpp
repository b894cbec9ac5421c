// Numbers and sizes as fragshim's own variables and flags take them: strictly.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fragshim {

/// What parse_size takes, as one phrase for messages.
inline constexpr std::string_view size_allowed = "bytes, or a number with suffix KiB, MiB or GiB";

/// Decimal digits only, nothing before or after, no overflow; else nothing.
std::optional<std::uint64_t> parse_integer(std::string_view text);

/// A SIZE: whole bytes, or a whole number with suffix KiB, MiB or GiB (exactly so); else nothing.
std::optional<std::uint64_t> parse_size(std::string_view text);

/// 1/0, on/off, true/false, yes/no in any case; else nothing.
std::optional<bool> parse_boolean(std::string_view text);

}  // namespace fragshim
