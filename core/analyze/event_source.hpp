// Where the events of a trace come from, whatever the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/record/event.hpp"

namespace fragshim {

class ByteStream;

class EventSource {
 public:
  EventSource() = default;
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;
  virtual ~EventSource() = default;

  /// Gives the next event; false at the end. Throws InputError for what cannot be read.
  virtual bool next(Event* event) = 0;

  /// Rows (or records) that were cut off or never finished, and left out; known at the end.
  virtual std::uint64_t incomplete() const { return 0; }
};

/// Opens a trace, told by its content: RMM's CSV log or the shim's binary trace, either of them
/// plain or packed (.gz, .xz, .zst). Throws InputError.
std::unique_ptr<EventSource> open_events(const std::string& path);
/// The same from an opened file.
std::unique_ptr<EventSource> open_events(ByteStream input);

}  // namespace fragshim
