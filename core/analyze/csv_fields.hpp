// The fields of a line of RMM's log, each read by hand: millions a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/record/event.hpp"
#include "core/types.hpp"

namespace fragshim {

/// Decimal digits only, without overflow; else nothing.
std::optional<std::uint64_t> decimal_field(std::string_view text);

/// 0x and hexadecimal digits, or `(nil)`, or decimal digits; else nothing.
std::optional<std::uint64_t> address_field(std::string_view text);

/// `H:M:S` with up to nine digits of a second after a point or colon, before it perhaps a date
/// `YYYY-MM-DD` (1970 to 2261) and a space or `T`. Nanoseconds since midnight, or since the epoch
/// with a date; else nothing.
std::optional<std::int64_t> time_field(std::string_view text);

/// allocate, allocate failure, free or trim; else nothing.
std::optional<Action> action_field(std::string_view text);

/// What action_field takes, as one phrase for messages.
inline constexpr std::string_view actions_allowed = "allocate, allocate failure, free or trim";

}  // namespace fragshim
