// The value of roundup_power2_divisions: one number, or a list by size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fragshim {

using Divisions = std::array<std::uint32_t, 16>;

/// Reads the value whose first token is at `*last` and moves `*last` to its last token.
///
/// A number, a power of two, fills all divisions. A list "[K:D,...,>:D]" sets those it names: K, a
/// power of two, is for sizes in [K, 2K) MB; the first K also for all smaller ones; '>' for all
/// above the last K. What it does not name stays as it was (0 at first, or as an earlier value of
/// the key left it), as in PyTorch.
/// False where the value is bad: all divisions are 0 then.
bool read_roundup(const std::vector<std::string>& tokens, std::size_t* last, Divisions* divisions);

}  // namespace fragshim
