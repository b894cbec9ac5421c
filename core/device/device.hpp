// What the allocator asks of a device: the whole list. Two implementations exist, the CUDA Driver
// API (shim/cuda_device) and a simulated device (core/device/simulated); limits and meters wrap
// either of them. Every call is thread-safe, never throws, and is made with no lock of ours held.
#pragma once

#include "core/types.hpp"

namespace fragshim {

enum class Outcome : std::uint8_t {
  ok,
  out_of_memory,  // the device has no room
  over_limit,     // a configured limit refused before the device was asked
  not_ready,      // the fence has not passed yet
  not_owned,      // the address is no live block here
  unsupported,    // this device or driver cannot do it
  failed,         // anything else; `code` tells
};

/// The result of a call. `code` is the driver's own error code where a driver spoke, else 0.
struct Status {
  Outcome outcome = Outcome::ok;
  int code = 0;
  constexpr bool ok() const { return outcome == Outcome::ok; }
  constexpr bool no_memory() const {
    return outcome == Outcome::out_of_memory || outcome == Outcome::over_limit;
  }
};

/// Physical memory without an address (CUDA: CUmemGenericAllocationHandle).
struct Physical {
  std::uint64_t handle = 0;
};

/// A point in the device's work (CUDA: CUevent).
struct Fence {
  std::uint64_t handle = 0;
  constexpr explicit operator bool() const { return handle != 0; }
};

/// Names all streams of the context at once, where a StreamId is asked for by `record`.
inline constexpr StreamId all_streams = ~StreamId{0};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // --- plain segments: address and memory in one (cuMemAlloc, cuMemFree) ---

  /// Gets a segment of `size` bytes. CUDA aligns it to 512 bytes or better.
  virtual Status allocate_segment(Bytes size, Address* out) noexcept = 0;
  /// Returns a whole segment. May wait for the device to be idle, as cuMemFree does.
  virtual Status release_segment(Address address, Bytes size) noexcept = 0;

  // --- virtual memory; sizes and addresses are multiples of granularity() ---

  /// The unit of physical memory, in bytes (2 MiB on every GPU so far); 0 where unsupported.
  virtual Bytes granularity() const noexcept = 0;
  /// Reserves addresses only.
  virtual Status reserve(Bytes size, Address* out) noexcept = 0;
  virtual Status unreserve(Address address, Bytes size) noexcept = 0;
  /// Creates physical memory only.
  virtual Status create(Bytes size, Physical* out) noexcept = 0;
  /// Drops the creator's hold; the memory lives on until its last mapping is gone.
  virtual Status destroy(Physical memory, Bytes size) noexcept = 0;
  /// Maps the whole of `memory` at `address`, readable and writable. One handle may be mapped at
  /// several addresses at once. Never waits for the device.
  virtual Status map(Address address, Bytes size, Physical memory) noexcept = 0;
  /// Undoes one `map`, whole. Never waits for the device: the caller sees that nothing runs there.
  virtual Status unmap(Address address, Bytes size) noexcept = 0;

  // --- order ---

  /// Whether `record` knows all_streams (not only now and then: on this device at all).
  virtual bool has_context_fences() const noexcept = 0;
  /// Marks the present end of `stream`'s work (or of all streams' work: all_streams).
  /// Fails with `unsupported` where that cannot be done without disturbing the program (a capture
  /// is underway, or the driver knows no context-wide event).
  virtual Status record(StreamId stream, Fence* out) noexcept = 0;
  /// ok: all work before the fence is done; not_ready: not yet.
  virtual Status query(Fence fence) noexcept = 0;
  /// Blocks the calling thread until the fence has passed.
  virtual Status wait(Fence fence) noexcept = 0;
  /// Makes later work on `stream` start only behind the fence; does not block the caller. Of
  /// all_streams later work is what the caller submits: for them it is wait().
  virtual Status stream_wait(StreamId stream, Fence fence) noexcept = 0;
  /// Gives the fence back; its handle may be recycled.
  virtual void retire(Fence fence) noexcept = 0;
  /// Blocks until the whole context is idle (what cudaFree would have done).
  virtual Status synchronize() noexcept = 0;

  // --- memory information ---

  /// Bytes free on and total of the whole device, whoever holds them.
  virtual Status memory_info(Bytes* free, Bytes* total) noexcept = 0;
};

}  // namespace fragshim
