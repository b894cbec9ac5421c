// Where the events of a trace come from, whatever the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record/event.hpp"

namespace fragshim {

class ByteStream;

/// One line of a program, as a recording names it. The texts belong to the recording.
struct CodeFrame {
  std::string_view function;
  std::string_view file;
  std::int64_t line = 0;
};

/// What a recording says of the allocator at its end.
struct RecordedState {
  Bytes reserved = 0;
  std::string conf;                // PYTORCH_CUDA_ALLOC_CONF's value
  std::uint64_t alive_before = 0;  // blocks that were there before its first event
};

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

  /// Whether any request came through the stream-ordered door, known from the start; false where
  /// the recording knows of no doors.
  virtual bool has_stream_ordered() const { return false; }

  /// Where in the program the event that `next` gave last was asked for, innermost first; empty
  /// where the recording does not say. Valid as long as the source.
  virtual std::vector<CodeFrame> stack() const { return {}; }

  /// Nothing where the recording does not say.
  virtual std::optional<RecordedState> recorded_state() const { return std::nullopt; }
};

/// Which part of a recording is wanted, where it has several.
struct SourceOptions {
  std::optional<int> device;  // of a snapshot; nothing: the one with the most events
};

/// Opens a trace, told by its content: RMM's CSV log, a PyTorch memory snapshot or the shim's
/// binary trace, any of them plain or packed (.gz, .xz, .zst). Throws InputError.
std::unique_ptr<EventSource> open_events(const std::string& path,
                                         const SourceOptions& options = {});
/// The same from an opened file.
std::unique_ptr<EventSource> open_events(ByteStream input, const SourceOptions& options = {});

}  // namespace fragshim
