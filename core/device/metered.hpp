// Counts the memory calls to a device and the time spent in them.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/device/forwarding.hpp"

namespace fragshim {

/// What a MeteredDevice has counted so far.
struct Meter {
  std::uint64_t device_alloc = 0;    // successful calls that took memory: segments, physical memory
  std::uint64_t device_free = 0;     // ... that gave it back
  std::uint64_t device_time_ns = 0;  // in memory calls, address space and mappings included
};

class MeteredDevice final : public ForwardingDevice {
 public:
  /// `inner` outlives this device.
  explicit MeteredDevice(Device& inner) noexcept : ForwardingDevice(inner) {}

  Status allocate_segment(Bytes size, Address* out) noexcept override;
  Status release_segment(Address address, Bytes size) noexcept override;
  Status reserve(Bytes size, Address* out) noexcept override;
  Status unreserve(Address address, Bytes size) noexcept override;
  Status create(Bytes size, Physical* out) noexcept override;
  Status destroy(Physical memory, Bytes size) noexcept override;
  Status map(Address address, Bytes size, Physical memory) noexcept override;
  Status unmap(Address address, Bytes size) noexcept override;

  /// Cheap; each figure is exact, though not all of one instant.
  Meter meter() const noexcept;
  /// Meter::device_free alone.
  std::uint64_t device_free() const noexcept {
    return device_free_.load(std::memory_order_relaxed);
  }

 private:
  using Count = std::atomic<std::uint64_t>;
  template <class Call>
  Status timed(Count* count, Call call) noexcept;

  Count device_alloc_{0};
  Count device_free_{0};
  Count device_time_ns_{0};
};

}  // namespace fragshim
