// A trace as a heap sees it: events whose addresses have become slots.
#pragma once

#include <cstdint>
#include <vector>

#include "core/analyze/address_slots.hpp"
#include "core/analyze/door_filter.hpp"
#include "core/analyze/event_source.hpp"
#include "core/types.hpp"

namespace fragshim {

/// One call of an allocator. A slot holds one live block at a time.
struct ReplayStep {
  Action action = Action::trim;  // allocate, free or trim
  AddressSlots::Slot slot = 0;
  Bytes size = 0;
  StreamId stream = 0;
  std::uint64_t row = 0;     // of the event, from 1
  std::int64_t time_ns = 0;  // of the event; stored steps have none
};

/// What a trace holds, and what is odd about it.
struct TraceCounts {
  std::uint64_t events = 0;
  std::uint64_t recorded_failures = 0;  // `allocate failure` rows: not requested again
  std::uint64_t unmatched_frees = 0;    // of addresses that were never allocated in the trace
  std::uint64_t implied_frees = 0;      // live addresses handed out again: a free was not recorded
  std::uint64_t incomplete = 0;         // rows cut off
  std::uint64_t left_out_events = 0;    // of cudaMalloc's blocks beside a stream-ordered allocator
  Bytes left_out_peak = 0;              // the most that these held at once
  std::int64_t begin_ns = 0;            // the first event's time, and the last's
  std::int64_t end_ns = 0;

  std::int64_t duration_ns() const { return end_ns - begin_ns; }
};

class StepSource {
 public:
  StepSource() = default;
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;
  virtual ~StepSource() = default;

  /// Replaces `batch` by the next steps, some thousands at most; false at the end.
  virtual bool next(std::vector<ReplayStep>* batch) = 0;
  /// All slots of the steps given so far are below.
  virtual std::size_t slots() const = 0;
  /// As of the steps given so far.
  virtual TraceCounts counts() const = 0;

 protected:
  static constexpr std::size_t batch_size = 4096;
};

/// Steps straight from a trace: memory bounded by the blocks that live at once.
class StepReader final : public StepSource {
 public:
  /// `events` outlives this.
  explicit StepReader(EventSource& events, Doors doors = Doors::leading)
      : events_(events), filter_(doors == Doors::leading && events.has_stream_ordered()) {}

  bool next(std::vector<ReplayStep>* batch) override;
  std::size_t slots() const override { return slots_.bound(); }
  TraceCounts counts() const override { return counts_; }

  /// Adds the steps of one event to `batch`: none, one, or two where a free was not recorded.
  void resolve(const Event& event, std::vector<ReplayStep>* batch);

 private:
  void note_time(const Event& event);
  void leave_out(const Event& event, std::vector<ReplayStep>* batch);
  void resolve_allocation(const Event& event, std::vector<ReplayStep>* batch);
  void resolve_free(const Event& event, std::vector<ReplayStep>* batch);

  EventSource& events_;
  DoorFilter filter_;
  AddressSlots slots_;
  TraceCounts counts_;
};

/// A whole trace in memory, 16 bytes a step, to be replayed many times, by many threads at once.
class StoredSteps {
 public:
  /// Throws what the source throws, and InputError for a trace with 65,536 streams or more.
  explicit StoredSteps(EventSource& events);

  const TraceCounts& counts() const { return counts_; }
  std::size_t steps() const { return steps_.size(); }
  /// The most that was asked for and alive at once.
  Bytes requested_peak() const { return requested_peak_; }

  class Reader;

 private:
  /// Sizes of 2^48 bytes and more count as 2^48 - 1. `skip`: rows since the step before.
  struct Packed {
    std::uint64_t size : 48;
    std::uint64_t stream : 16;  // index into streams_
    std::uint64_t slot : 32;
    std::uint64_t action : 4;
    std::uint64_t skip : 28;
  };
  static_assert(sizeof(Packed) == 16);

  void store(const std::vector<ReplayStep>& batch);
  void follow_requested(const ReplayStep& step);
  std::uint64_t stream_index(StreamId stream);

  std::vector<Packed> steps_;
  std::vector<StreamId> streams_;
  std::vector<Bytes> sizes_;  // by slot; while reading
  std::size_t slots_ = 0;
  std::uint64_t last_row_ = 0;
  Bytes requested_ = 0;
  Bytes requested_peak_ = 0;
  TraceCounts counts_;
};

/// One pass over stored steps, which outlive it.
class StoredSteps::Reader final : public StepSource {
 public:
  explicit Reader(const StoredSteps& stored) : stored_(stored) {}
  bool next(std::vector<ReplayStep>* batch) override;
  std::size_t slots() const override { return stored_.slots_; }
  TraceCounts counts() const override { return stored_.counts_; }

 private:
  const StoredSteps& stored_;
  std::size_t next_ = 0;
  std::uint64_t row_ = 0;
};

}  // namespace fragshim
