// Why a request failed: the evidence, and the class it adds up to.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/alloc/heap.hpp"
#include "core/record/metrics.hpp"
#include "core/types.hpp"

namespace fragshim {

enum class FailureClass : std::uint8_t {
  fragmentation,   // enough is free in sum, but in pieces that are too small
  stream_bound,    // a block is large enough, but bound to another stream or waiting for its fence
  rounding,        // would fit without rounding or split limits
  limit,           // a configured limit stopped it, not the card
  outside_memory,  // the card is full, and most of it is not ours
  true_shortage,   // alive + request exceed the capacity: no setting can help
};

/// The class's name in the log and the reports: "fragmentation", "stream_bound", ….
std::string_view name(FailureClass failure) noexcept;

/// A live block that keeps free memory from going back to the device.
struct Pin {
  Address address = 0;
  Bytes size = 0;    // of the live block
  Bytes pinned = 0;  // free bytes in its segment, shared evenly among the segment's live blocks
};

/// What was known when a request failed, after every attempt to release and search again.
struct FailureEvidence {
  Bytes request = 0;            // what the program asked for
  Bytes rounded = 0;            // the same as the policy rounds it; 0: as requested
  Bytes segment_size = 0;       // what would have been asked of the device for it; 0: as rounded
  Bytes device_free = 0;        // on the whole card, whoever holds the rest
  Bytes device_total = 0;       // 0: unknown
  Bytes limit = 0;              // on the bytes held from the device; 0: none
  Bytes held = 0;               // what counts against the limit; heaps under one limit add up
  Usage usage;                  // the heap's
  Bytes largest_reachable = 0;  // the largest free block that this request's stream could take
  Bytes largest_bound = 0;      // the largest free block bound to another stream or pending
  static constexpr std::size_t max_pins = 5;
  std::array<Pin, max_pins> pins{};  // those that pin the most, first
  std::size_t pin_count = 0;
};

struct Failure {
  FailureClass cause = FailureClass::true_shortage;
  Bytes capacity = 0;   // what this process could have at most: the limit, or the card's share
  Bytes available = 0;  // free in sum for this request: capacity not held, and cached
  Bytes shortfall = 0;  // how much is missing where available < request
};

/// Fills in what a heap knows of itself (usage, largest blocks, pins) for a request on `stream`.
/// Walks every block: for failures only. The caller adds sizes, device and limit.
FailureEvidence gather_evidence(const Heap& heap, Bytes request, StreamId stream) noexcept;

/// What the evidence adds up to (facts: the failure classes). Pure.
Failure classify(const FailureEvidence& evidence) noexcept;

}  // namespace fragshim
