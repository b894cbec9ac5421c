// Reads the shim's binary trace (core/record/trace_format.hpp).
#pragma once

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/event_source.hpp"
#include "core/record/trace_format.hpp"

namespace fragshim {

/// True where a file begins like a binary trace.
bool is_trace(std::string_view head);

class TraceReader final : public EventSource {
 public:
  /// Throws InputError where the header is not one that this version reads.
  explicit TraceReader(ByteStream input);

  /// Times count from the header's realtime: nanoseconds since the epoch.
  bool next(Event* event) override;
  std::uint64_t incomplete() const override { return holes_before_record_ + (cut_ ? 1 : 0); }
  bool has_stream_ordered() const override { return (header_.doors & stream_ordered_bit) != 0; }
  const TraceHeader& header() const { return header_; }

 private:
  ByteStream input_;
  TraceHeader header_;
  std::string_view rest_;    // peeked and not read yet
  std::size_t taken_ = 0;    // read of what was peeked
  std::uint64_t index_ = 0;  // records read
  std::uint64_t holes_ = 0;  // unfinished records since the last finished one
  std::uint64_t holes_before_record_ = 0;
  bool cut_ = false;  // the file ends in the midst of a record
};

}  // namespace fragshim
