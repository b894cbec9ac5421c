#include "core/analyze/trace_reader.hpp"

#include <cstring>
#include <utility>

#include "core/analyze/input_error.hpp"

namespace fragshim {

namespace {

constexpr std::size_t records_at_once = 8192;
constexpr std::uint32_t largest_header = 4096;
constexpr std::int64_t latest_start_ns = std::int64_t{1} << 62;  // records add less than as much

bool is_known(const Event& event) {
  return event.action >= Action::allocate && event.action <= Action::trim &&
         event.door <= EventDoor::stream_ordered;
}

bool is_readable(const TraceHeader& header) {
  return header.version >= oldest_trace_version && header.version <= trace_version &&
         header.record_size == sizeof(TraceRecord) && header.header_size >= sizeof header &&
         header.header_size <= largest_header;
}

}  // namespace

bool is_trace(std::string_view head) {
  return head.size() >= trace_magic.size() &&
         std::memcmp(head.data(), trace_magic.data(), trace_magic.size()) == 0;
}

TraceReader::TraceReader(ByteStream input) : input_(std::move(input)) {
  const std::string_view head = input_.peek(sizeof header_);
  if (!is_trace(head)) throw InputError(input_.name() + ": not a binary trace of fragshim");
  if (head.size() < sizeof header_) {
    throw InputError(input_.name() + ": cut off within its header");
  }
  std::memcpy(&header_, head.data(), sizeof header_);
  if (!is_readable(header_)) {
    throw InputError(input_.name() + ": trace format " + std::to_string(header_.version) +
                     "; this version reads formats " + std::to_string(oldest_trace_version) +
                     " to " + std::to_string(trace_version));
  }
  if (header_.realtime_ns < 0 || header_.realtime_ns > latest_start_ns) {
    throw InputError(input_.name() + ": it begins at no time that a clock shows");
  }
  if (input_.peek(header_.header_size).size() < header_.header_size) {
    throw InputError(input_.name() + ": cut off within its header");
  }
  input_.skip(header_.header_size);
}

bool TraceReader::next(Event* event) {
  for (;;) {
    if (rest_.size() < sizeof(TraceRecord)) {
      input_.skip(taken_);
      taken_ = 0;
      rest_ = input_.peek(records_at_once * sizeof(TraceRecord));
      if (rest_.size() < sizeof(TraceRecord)) {
        cut_ = !rest_.empty();
        return false;
      }
    }
    TraceRecord record;
    std::memcpy(&record, rest_.data(), sizeof record);
    rest_.remove_prefix(sizeof record);
    taken_ += sizeof record;
    ++index_;
    *event = unpack_record(record);
    if (event->action == Action::none) {
      ++holes_;  // or the unused rest of a killed process's file: known at the next record
      continue;
    }
    if (!is_known(*event)) {
      throw InputError(input_.name() + ": record " + std::to_string(index_) + ": unknown action " +
                       std::to_string(record.words[0] & 0xff));
    }
    holes_before_record_ += std::exchange(holes_, 0);
    event->time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(event->time_ns) +
                                               static_cast<std::uint64_t>(header_.realtime_ns));
    return true;
  }
}

}  // namespace fragshim
