// Which events of a recording are the requests of the program's own allocator.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "core/record/event.hpp"
#include "core/types.hpp"

namespace fragshim {

/// Whose requests are wanted of a recording that knows its doors.
enum class Doors : std::uint8_t {
  all,
  /// Where requests were stream-ordered, those alone: they are PyTorch's, or whichever allocator
  /// the program has. What libraries take by cudaMalloc beside it is not its business, and never
  /// shares its segments.
  leading,
};

/// Tells the blocks that are left out: an allocation by its door, a free by its address, for either
/// door frees the other's blocks. Memory: bounded by what is left out and alive at once.
class DoorFilter {
 public:
  /// Inactive, it leaves out nothing.
  explicit DoorFilter(bool active) : active_(active) {}

  /// Whether `event`, the next one of the recording, is left out.
  bool leaves_out(const Event& event) { return active_ && is_of_left_out_block(event); }

  std::uint64_t events() const { return events_; }
  /// The most that was left out and alive at once.
  Bytes peak() const { return peak_; }

 private:
  bool is_of_left_out_block(const Event& event);
  void add(const Event& event);
  bool remove(Address address);

  bool active_;
  std::unordered_map<Address, Bytes> live_;
  Bytes held_ = 0;
  Bytes peak_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace fragshim
