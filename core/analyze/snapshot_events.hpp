// Reads a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot) as a trace.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/analyze/event_source.hpp"
#include "core/analyze/pickle_data.hpp"

namespace fragshim {

/// The events of one device of a snapshot: first the blocks that were alive before the recording
/// began, as allocations, then what was recorded. A block counts as free once its free is
/// completed, an emptied cache becomes a trim.
class SnapshotEvents final : public EventSource {
 public:
  /// `device`: an ordinal; nothing: the device with the most events. Throws InputError where the
  /// file is no snapshot or has no such device.
  SnapshotEvents(ByteStream input, std::optional<int> device);

  bool next(Event* event) override;
  std::vector<CodeFrame> stack() const override;
  std::optional<RecordedState> recorded_state() const override { return state_; }
  int device() const { return device_; }

 private:
  using Id = PickleData::Id;
  static constexpr Id no_frames = ~Id{0};

  /// An entry of the device's trace; the action as the snapshot names it.
  struct Entry {
    std::string_view action;
    Event event;
    Id frames = no_frames;
  };
  struct Recorded {
    Event event;
    Id frames;
  };
  /// A block that is in use at the end.
  struct LiveBlock {
    Bytes size;
    StreamId stream;
    Id frames;
  };

  void choose_device(std::optional<int> wanted);
  std::size_t events_of(int device) const;
  Entry read_entry(Id id) const;
  Id frames_of(Id owner) const;
  std::int64_t integer_of(Id owner, std::string_view key) const;
  void read_segments();
  void read_blocks(Id segment);
  void read_trace();
  void read_action(const Entry& entry);
  void add_blocks_alive_before();
  std::vector<bool> find_trims(const std::vector<Entry>& entries) const;

  PickleData data_;
  int device_ = 0;
  Id trace_ = no_frames;
  RecordedState state_;
  std::unordered_map<Address, LiveBlock> at_end_;  // blocks in use, as the segments say
  std::unordered_set<Address> live_;               // by the trace so far
  std::unordered_set<Address> touched_;            // allocated or freed in it
  std::vector<Recorded> before_;                   // blocks alive before the recording
  std::vector<Recorded> recorded_;
  std::size_t blocks_read_ = 0;
  std::size_t next_ = 0;
};

}  // namespace fragshim
