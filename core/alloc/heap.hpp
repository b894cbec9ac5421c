// The interface every allocator of this project has, and what it tells about itself.
#pragma once

#include <string>

#include "core/device/device.hpp"
#include "core/record/metrics.hpp"
#include "core/types.hpp"

namespace fragshim {

/// What `allocate` gives: an address, or why there is none.
struct Grant {
  Address address = 0;
  Status status;
};

enum class BlockState : std::uint8_t {
  live,
  free,      // found by requests of its stream
  pending,   // freed, but a fence must pass first
  unmapped,  // addresses without memory
  hollow,    // addresses whose memory serves elsewhere by now; the device may still be there
};

/// Whether physical memory of its own is behind a block in that state.
constexpr bool has_memory(BlockState state) {
  return state != BlockState::unmapped && state != BlockState::hollow;
}

/// One stretch of a heap's memory, as `walk` shows it.
struct BlockView {
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;  // live blocks only: what the program asked for
  Address segment = 0;  // the segment (or reserved range) it lies in
  StreamId stream = 0;  // the stream it belongs to
  BlockState state = BlockState::free;
};

class BlockVisitor {
 public:
  virtual ~BlockVisitor() = default;
  virtual void visit(const BlockView& block) = 0;
};

/// A thread-safe allocator of device memory. Nothing here throws; a heap that runs out of host
/// memory reports out_of_memory and stays whole.
class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  virtual ~Heap() = default;

  /// Allocates `size` bytes (> 0) for work on `stream`, aligned to 512 bytes at least.
  virtual Grant allocate(Bytes size, StreamId stream) noexcept = 0;
  /// Frees a block by the address `allocate` gave. Stream-ordered heaps take the memory back as of
  /// `stream`'s present end of work. not_owned: no live block starts there; nothing has happened.
  virtual Status free(Address address, StreamId stream) noexcept = 0;
  /// Gives memory back to the device until at most `keep` bytes stay reserved, as far as free
  /// memory allows. Returns the bytes given back.
  virtual Bytes trim(Bytes keep) noexcept = 0;
  /// True where the address lies in memory this heap holds (a live block or not).
  virtual bool contains(Address address) const noexcept = 0;
  /// Called before `stream` is destroyed: its blocks get a fence while it can still be recorded.
  virtual void forget_stream(StreamId stream) noexcept { (void)stream; }
  /// Keeps the segment that starts at `address` from being split or reused for as long as it
  /// lives, since others hold its handle. False: no segment of this heap starts there.
  virtual bool pin_segment(Address address) noexcept {
    (void)address;
    return false;
  }
  /// Sets the peaks back to what is held now.
  virtual void reset_peaks(bool allocated, bool reserved) noexcept = 0;

  /// The running totals only: cheap, no walk.
  virtual Counters counters() const noexcept = 0;
  /// Everything of facts/metrics: walks the free blocks.
  virtual Usage usage() const noexcept = 0;
  /// Shows every block in address order within its segment.
  virtual void walk(BlockVisitor& visitor) const = 0;
  /// Verifies every structure against every other. False: `why` says what is wrong.
  virtual bool check(std::string* why) const = 0;
};

}  // namespace fragshim
