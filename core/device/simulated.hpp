// A device without a device: memory of a given capacity, streams whose work is pending until
// awaited, prices, failures to order. Tests of the core, the replay and the stand-in driver run on
// it.
#pragma once

#include <array>
#include <mutex>
#include <unordered_map>

#include "core/device/device.hpp"
#include "core/device/simulated_faults.hpp"
#include "core/device/simulated_memory.hpp"
#include "core/device/simulated_order.hpp"

namespace fragshim {

struct SimulatedOptions : MemoryOptions {
  bool context_fences = true;  // record(all_streams) works, as from CUDA 12.5 on
};

class SimulatedDevice : public Device {
 public:
  explicit SimulatedDevice(const SimulatedOptions& options = {});

  Status allocate_segment(Bytes size, Address* out) noexcept override;
  Status release_segment(Address address, Bytes size) noexcept override;
  Bytes granularity() const noexcept override;
  bool has_context_fences() const noexcept override { return context_fences_; }
  Status reserve(Bytes size, Address* out) noexcept override;
  Status unreserve(Address address, Bytes size) noexcept override;
  Status create(Bytes size, Physical* out) noexcept override;
  Status destroy(Physical memory, Bytes size) noexcept override;
  Status map(Address address, Bytes size, Physical memory) noexcept override;
  Status unmap(Address address, Bytes size) noexcept override;
  Status record(StreamId stream, Fence* out) noexcept override;
  Status query(Fence fence) noexcept override;
  Status wait(Fence fence) noexcept override;
  Status stream_wait(StreamId stream, Fence fence) noexcept override;
  void retire(Fence fence) noexcept override;
  Status synchronize() noexcept override;
  Status memory_info(Bytes* free, Bytes* total) noexcept override;

  // --- what a test or the stand-in driver does as the program ---

  /// Makes a stream of a kind known; streams never made known are non_blocking.
  void add_stream(StreamId stream, StreamKind kind) { order_.add_stream(stream, kind); }
  /// Notes work on a stream that touches a range. Memory that is not there is a hazard, too.
  void submit(StreamId stream, Address address, Bytes size, Access access = Access::write);
  /// The pieces of physical memory behind a range; false if a part of it has none.
  bool touches(Address address, Bytes size, Access access, std::vector<Touch>* out) const;
  /// Completes all of a stream's work and what it waits for.
  void complete(StreamId stream) { order_.complete(order_.record(stream)); }
  void complete_all() { order_.complete(order_.record_all()); }
  /// Completes a stream's oldest pending work. False: none is pending.
  bool complete_one(StreamId stream) { return order_.complete_one(stream); }
  /// Work touched out of order, or memory taken away under pending work; the first, described.
  std::uint64_t hazards() const { return order_.hazards(); }
  std::string first_hazard() const { return order_.first_hazard(); }
  WorkOrder& order() { return order_; }

  // --- what there is ---

  /// Which physical memory backs an address; nothing where none does.
  std::optional<Location> mapped_physical(Address address) const;
  std::optional<SimulatedMemory::Segment> segment_of(Address address) const;
  std::optional<SimulatedMemory::Segment> reservation_of(Address address) const;
  /// Reserves with an alignment of choice (a power of two; at least the granularity is used).
  Status reserve_aligned(Bytes size, Bytes alignment, Address* out) noexcept;
  Bytes physical_size(Physical memory) const;
  std::size_t mappings_in(Address address, Bytes size) const;
  Bytes used() const;
  std::size_t segments() const;
  std::size_t physicals() const;
  std::size_t mappings() const;
  std::size_t live_fences() const;
  Bytes capacity() const { return capacity_; }

  // --- cost ---

  /// Microseconds that a real device's driver would have spent in the calls so far.
  double time_us() const;
  /// How often a call was made, failed calls included.
  std::uint64_t calls(Call call) const;

  // --- failures to order (simulated_faults.hpp says what the arguments mean) ---

  void fail_next(Call call, std::uint64_t nth, Status status);
  void fail_every(Call call, std::uint64_t n, Status status);
  void decide_failures_by(Faults::Decide decide);
  void clear_failures();

 private:
  using Lock = std::lock_guard<std::mutex>;
  struct FenceState {
    WorkClock clock;
    bool whole_context = false;
  };

  Status enter(Call call, double price);
  bool fence_clock(Fence fence, WorkClock* out, bool* whole_context = nullptr) const;

  const Bytes capacity_;
  const Bytes granularity_;
  const bool context_fences_;
  mutable std::mutex mutex_;  // guards all below but order_, which has a lock of its own
  SimulatedMemory memory_;
  Faults faults_;
  double time_us_ = 0;
  std::uint64_t next_fence_ = 1;
  std::unordered_map<std::uint64_t, FenceState> fences_;
  WorkOrder order_;
};

}  // namespace fragshim
