// A program against a heap on the simulated device: it allocates, uses, hands on and frees as
// programs may, and believes nothing. After every operation the heap must agree with the model,
// with the device and with itself.
#pragma once

#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/alloc/native_heap.hpp"
#include "core/alloc/virtual_heap.hpp"
#include "core/device/simulated.hpp"
#include "tests/model/choices.hpp"
#include "tests/stubborn_device.hpp"

namespace fragshim::model {

enum class HeapKind : std::uint8_t { in_order, fenced, expandable, stream_ordered, stitched };

struct Setup {
  HeapKind kind = HeapKind::in_order;
  AllocationConfig config;
  Bytes capacity = 128 * MiB;
  Bytes allowed = unlimited;  // NativeOptions::allowed
  Bytes largest = 24 * MiB;   // request
  Bytes least_chunk = 2 * MiB;
  bool context_fences = true;
  std::uint64_t fault_in = 0;     // one device call in so many fails; 0: none
  std::uint64_t stubborn_in = 0;  // one chunk in so many is not mapped a second time; 0: none
  std::size_t most_live = 150;

  /// A NativeHeap, not a VirtualHeap.
  bool native() const { return kind != HeapKind::stream_ordered && kind != HeapKind::stitched; }
};

/// What a model throws: the heap was wrong.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class HeapModel {
 public:
  HeapModel(const Setup& setup, Choices& choices, bool trace);

  /// One random operation, checked.
  void step();
  /// Ends the program: everything is freed and given back, and nothing may be left anywhere.
  void finish();
  /// The nth device call of a kind from now on fails.
  void fail_once(Call call, std::uint64_t nth, Status status);
  SimulatedDevice& device() { return device_; }
  const Heap& heap() const { return *heap_; }
  int refusals() const { return front_.refusals(); }  // of mappings: Setup::stubborn_in

 private:
  struct Live {
    Bytes requested = 0;
    Bytes size = 0;
    StreamId stream = 0;  // on which it was used last
  };
  using Blocks = std::map<Address, Live>;

  // Operations (heap_model_steps.hpp).
  void allocate();
  void free_one();
  void free_block(Blocks::iterator block);
  void free_nothing();
  void use();
  void hand_on();
  void progress();
  void trim();
  void end_stream();

  // Checks (heap_model_checks.hpp).
  void check();
  void check_counters();
  void show() const;  // traces every block
  void check_every_block();
  void check_refusal(Bytes size, const Counters& before);
  void own(Address address, Bytes size);
  void disown(Address address, Bytes size);
  std::vector<Touch> memory_of(Address address, Bytes size);

  Status fault(Call call, std::uint64_t count);
  void work_on(StreamId stream, Address address, Bytes size);
  void order(StreamId before, StreamId after);
  StreamId any_stream() { return streams_[choices_.below(streams_.size())]; }
  Blocks::iterator any_block();
  bool cross_stream() const { return setup_.kind == HeapKind::stream_ordered; }
  /// Whether the heap is told of no stream: blocks may be used anywhere, but in order.
  bool streamless() const {
    return setup_.kind == HeapKind::fenced || setup_.kind == HeapKind::stitched;
  }
  StreamId told(StreamId stream) const { return streamless() ? all_streams : stream; }
  void require(bool holds, const std::string& what) {
    if (!holds) throw Wrong("step " + std::to_string(steps_) + ": " + what);
  }
  template <class... Parts>
  void say(const Parts&... parts) const {
    if (trace_) ((std::cerr << steps_ << ' ') << ... << parts) << '\n';
  }

  const Setup setup_;
  Choices& choices_;
  const bool trace_;
  SimulatedDevice device_;
  StubbornDevice front_{device_};
  std::unique_ptr<Heap> heap_;
  Blocks live_;
  std::map<Address, Bytes> owned_;  // physical memory of live blocks: start → size
  std::vector<StreamId> streams_{1, 2, 3, 4};
  StreamId next_stream_ = 5;
  std::uint64_t steps_ = 0;
  Bytes requested_ = 0;
  Bytes allocated_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t frees_ = 0;
  std::uint64_t refusals_ = 0;
  std::uint64_t faults_ = 0;  // ordered so far
  Call failing_ = Call::any;  // fail_once
  std::uint64_t failing_at_ = 0;
  Status failing_with_;
  bool armed_ = false;    // device calls may fail now
  bool growing_ = false;  // the device was last asked for memory
};

}  // namespace fragshim::model

#include "tests/model/heap_model_checks.hpp"
#include "tests/model/heap_model_steps.hpp"
