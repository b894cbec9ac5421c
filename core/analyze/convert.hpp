// A trace written in another format.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

#include "core/analyze/event_source.hpp"

namespace fragshim {

enum class TraceFormat : std::uint8_t { csv, binary, snapshot, perfetto };

/// The format that a file's name stands for by its ending; nothing for other endings.
std::optional<TraceFormat> format_of(std::string_view path);

/// What format_of takes, as one phrase for messages.
inline constexpr std::string_view formats_allowed =
    ".csv (RMM's log), .fstrace (fragshim's binary trace), .pickle (a PyTorch memory snapshot) or "
    ".json (counters for Perfetto)";

/// Writes all of a trace; `out`'s state tells whether that went well. Returns the events read.
/// Throws what the source throws.
std::uint64_t convert(EventSource& source, TraceFormat format, std::ostream& out);

/// RMM's CSV log: times with the date where the recording has one, frees with the size of what is
/// freed where it is known.
std::uint64_t write_csv(EventSource& source, std::ostream& out);
/// The shim's binary trace.
std::uint64_t write_binary(EventSource& source, std::ostream& out);

}  // namespace fragshim
