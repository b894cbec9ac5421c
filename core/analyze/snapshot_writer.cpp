#include "core/analyze/snapshot_writer.hpp"

#include <string>
#include <unordered_map>

#include "core/alloc/policy.hpp"
#include "core/analyze/convert_model.hpp"
#include "core/analyze/pickle_writer.hpp"

namespace fragshim {

namespace {

class SnapshotWriter {
 public:
  SnapshotWriter(EventSource& source, std::ostream& out)
      : source_(source), pickle_(out), heap_(ReplayOptions{}) {}

  std::uint64_t run() {
    pickle_.begin_dict();
    pickle_.text("device_traces");
    pickle_.begin_list();
    pickle_.begin_list();
    const TraceCounts counts =
        run_model(source_, Doors::all, &heap_,
                  [this](const Event& event, const ReplayStep& step, Address address) {
                    write_step(event, step, address);
                  });
    pickle_.end_list();
    pickle_.end_list();
    write_segments();
    write_settings();
    pickle_.end_dict();
    pickle_.finish();
    return counts.events;
  }

 private:
  static constexpr std::size_t flush_every = 1000;

  void write_step(const Event& event, const ReplayStep& step, Address address) {
    write_segment_changes(event);
    if (step.action == Action::free && address != 0) {
      write_entry("free_requested", event, address, sizes_[address]);
      write_entry("free_completed", event, address, sizes_[address]);
    } else if (step.action == Action::allocate && address != 0) {
      sizes_[address] = step.size;
      write_entry("alloc", event, address, step.size);
      stacks_at_[address] = stack_;
    } else if (step.action == Action::allocate) {
      write_entry("oom", event, 0, step.size);
    }
  }

  /// Entries for the segments that came or went with the step.
  void write_segment_changes(const Event& event) {
    const Counters counters = heap_.heap().counters();
    const std::uint64_t calls = counters.device_alloc + counters.device_free;
    if (calls == device_calls_) return;
    device_calls_ = calls;
    ModelSegments now = segments_of(heap_.heap());
    for (const auto& [address, segment] : segments_) {
      if (now.count(address) == 0) write_entry("segment_free", event, address, segment.size);
    }
    for (const auto& [address, segment] : now) {
      if (segments_.count(address) == 0) write_entry("segment_alloc", event, address, segment.size);
    }
    segments_ = std::move(now);
  }

  void write_entry(const char* action, const Event& event, Address address, Bytes size) {
    pickle_.begin_dict();
    member("action", action);
    member(address == 0 ? "device_free" : "addr", address);
    member("size", size);
    member("stream", event.stream);
    member("time_us", static_cast<std::uint64_t>(event.time_ns / 1000));
    pickle_.text("frames");
    write_stack(source_.stack());
    pickle_.end_dict();
    if (++entries_ % flush_every == 0) pickle_.flush_list();
  }

  void member(const char* key, std::uint64_t value) {
    pickle_.text(key);
    pickle_.integer(static_cast<std::int64_t>(value));
  }
  void member(const char* key, const char* value) {
    pickle_.text(key);
    pickle_.text(value);
  }

  /// A list of frames; each stack is written once.
  void write_stack(const std::vector<CodeFrame>& stack) {
    std::string key;
    for (const CodeFrame& frame : stack) {
      key.append(frame.function).append(1, '\n').append(frame.file);
      key.append(1, ':').append(std::to_string(frame.line)).append(1, '\n');
    }
    const auto known = stacks_.find(key);
    if (known != stacks_.end()) {
      stack_ = known->second;
      return pickle_.again(stack_);
    }
    pickle_.begin_list();
    for (const CodeFrame& frame : stack) {
      pickle_.begin_dict();
      pickle_.text("name");
      pickle_.text(frame.function);
      pickle_.text("filename");
      pickle_.text(frame.file);
      member("line", static_cast<std::uint64_t>(frame.line));
      pickle_.end_dict();
    }
    pickle_.end_list();
    stack_ = pickle_.keep();
    stacks_.emplace(std::move(key), stack_);
  }

  void write_segments() {
    pickle_.text("segments");
    pickle_.begin_list();
    std::size_t count = 0;
    for (const auto& [address, segment] : segments_of(heap_.heap())) {
      write_segment(address, segment);
      if (++count % flush_every == 0) pickle_.flush_list();
    }
    pickle_.end_list();
  }

  void write_segment(Address address, const ModelSegment& segment) {
    Bytes allocated = 0;
    Bytes requested = 0;
    for (const BlockView& block : segment.blocks) {
      if (block.state != BlockState::live) continue;
      allocated += block.size;
      requested += block.requested;
    }
    pickle_.begin_dict();
    member("device", std::uint64_t{0});
    member("address", address);
    member("total_size", segment.size);
    member("allocated_size", allocated);
    member("active_size", allocated);
    member("requested_size", requested);
    member("stream", segment.stream);
    member("segment_type", segment.size == policy::small_segment ? "small" : "large");
    pickle_.text("segment_pool_id");
    pickle_.integer(0);
    pickle_.integer(0);
    pickle_.pair();
    pickle_.text("is_expandable");
    pickle_.boolean(false);
    pickle_.text("frames");
    write_stack({});
    pickle_.text("blocks");
    pickle_.begin_list();
    for (const BlockView& block : segment.blocks) write_block(block);
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_block(const BlockView& block) {
    const bool live = block.state == BlockState::live;
    pickle_.begin_dict();
    member("address", block.address);
    member("size", block.size);
    member("requested_size", live ? block.requested : 0);
    member("state", live ? "active_allocated" : "inactive");
    pickle_.text("frames");
    const auto stack = stacks_at_.find(block.address);
    if (live && stack != stacks_at_.end()) {
      pickle_.again(stack->second);
    } else {
      write_stack({});
    }
    pickle_.end_dict();
  }

  void write_settings() {
    pickle_.text("allocator_settings");
    pickle_.begin_dict();
    member("PYTORCH_CUDA_ALLOC_CONF", "");
    pickle_.text("max_split_size");
    pickle_.integer(-1);
    pickle_.text("garbage_collection_threshold");
    pickle_.real(0);
    pickle_.text("expandable_segments");
    pickle_.boolean(false);
    pickle_.end_dict();
    pickle_.text("external_annotations");
    pickle_.begin_list();
    pickle_.end_list();
  }

  EventSource& source_;
  PickleWriter pickle_;
  ReplayHeap heap_;
  ModelSegments segments_;  // as of the last entry
  std::uint64_t device_calls_ = 0;
  std::uint64_t entries_ = 0;
  std::unordered_map<std::string, std::uint32_t> stacks_;  // what is kept in the pickle
  std::unordered_map<Address, std::uint32_t> stacks_at_;   // of the last block at an address
  std::unordered_map<Address, Bytes> sizes_;               // likewise
  std::uint32_t stack_ = 0;                                // written last
};

}  // namespace

std::uint64_t write_snapshot(EventSource& source, std::ostream& out) {
  return SnapshotWriter(source, out).run();
}

}  // namespace fragshim
