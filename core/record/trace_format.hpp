// The shim's binary trace file: a header, then records of 32 bytes until the end of the file.
//
// Records are packed so that one is written with four stores and none needs another to be read:
//   word 0: time << 8 | door << 6 | action
//                                nanoseconds since the header's start_ns (56 bits: two years)
//   word 1: address
//   word 2: size << 16 | stream >> 32     sizes of 2^48 bytes and more are recorded as 2^48 - 1
//   word 3: stream << 32 | thread         streams are folded to 48 bits, where pointers fit
// Word 0 is written last: a record whose action is zero was never finished, or never begun, and
// readers skip it. A file cut anywhere therefore reads as far as it goes. All numbers are little
// endian. Version 1 has zeros where the doors are.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/record/event.hpp"
#include "core/types.hpp"

namespace fragshim {

static_assert(std::endian::native == std::endian::little, "traces are written as memory is");

inline constexpr std::array<char, 8> trace_magic = {'F', 'S', 'T', 'R', 'A', 'C', 'E', '\n'};
inline constexpr std::uint32_t trace_version = 2;
inline constexpr std::uint32_t oldest_trace_version = 1;

struct TraceHeader {
  std::array<char, 8> magic = trace_magic;
  std::uint32_t version = trace_version;
  std::uint32_t header_size = 64;  // where the first record lies
  std::uint32_t record_size = 32;
  std::uint32_t pid = 0;
  std::int64_t start_ns = 0;     // the event clock at the start: what record times count from
  std::int64_t realtime_ns = 0;  // the same moment since the epoch
  Bytes device_total = 0;        // bytes on the card; 0: unknown
  std::uint32_t device = 0;      // its ordinal
  // The doors that served requests, a bit each (door_bit): known before the first record is read,
  // so that one pass can tell whose requests it wants.
  std::uint32_t doors = 0;
  std::array<std::uint32_t, 2> reserved{};
};
static_assert(sizeof(TraceHeader) == 64 && std::is_trivially_copyable_v<TraceHeader>);

/// The bit of TraceHeader::doors that an event sets.
constexpr std::uint32_t door_bit(const Event& event) {
  if (event.action != Action::allocate || event.door == EventDoor::unknown) return 0;
  return std::uint32_t{1} << static_cast<unsigned>(event.door);
}
inline constexpr std::uint32_t stream_ordered_bit =
    1u << static_cast<unsigned>(EventDoor::stream_ordered);

struct TraceRecord {
  std::array<std::uint64_t, 4> words{};
};
static_assert(sizeof(TraceRecord) == 32 && std::is_trivially_copyable_v<TraceRecord>);

inline constexpr Bytes trace_size_limit = (Bytes{1} << 48) - 1;

/// A stream in 48 bits: itself where it fits, as every pointer does; else mixed from all its bits.
constexpr std::uint64_t fold_stream(StreamId stream) {
  return (stream ^ (stream >> 48) * 0x9e3779b1) & trace_size_limit;
}

/// `start_ns` as in the header; events before it are recorded at 0.
constexpr TraceRecord pack_record(const Event& event, std::int64_t start_ns) {
  const auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(event.time_ns - start_ns, 0));
  const std::uint64_t stream = fold_stream(event.stream);
  const auto door = static_cast<std::uint64_t>(event.door);
  return {{time << 8 | door << 6 | static_cast<std::uint64_t>(event.action), event.address,
           std::min(event.size, trace_size_limit) << 16 | stream >> 32,
           stream << 32 | event.thread}};
}

/// The reverse, with times that count from 0; action `none` for a record that is not there.
constexpr Event unpack_record(const TraceRecord& record) {
  const auto& words = record.words;
  Event event;
  event.time_ns = static_cast<std::int64_t>(words[0] >> 8);
  event.address = words[1];
  event.size = words[2] >> 16;
  event.stream = (words[2] & 0xffff) << 32 | words[3] >> 32;
  event.thread = static_cast<std::uint32_t>(words[3]);
  event.action = static_cast<Action>(words[0] & 0x3f);
  event.door = static_cast<EventDoor>(words[0] >> 6 & 3);
  return event;
}

}  // namespace fragshim
