// A limit on the memory that is held from a device, shared by all heaps that draw on it.
#pragma once

#include <atomic>

#include "core/device/forwarding.hpp"

namespace fragshim {

/// Bytes that several heaps may hold together. Thread-safe, without locks.
class Budget {
 public:
  constexpr Budget() noexcept = default;
  explicit constexpr Budget(Bytes limit) noexcept : limit_(limit) {}

  /// Takes `size` bytes out of the budget; false where they are not there, and nothing is taken.
  bool take(Bytes size) noexcept;
  /// Puts bytes back that were taken.
  void give(Bytes size) noexcept { held_.fetch_sub(size, std::memory_order_relaxed); }

  /// For the owner, before or between uses; what is held already stays held.
  void set_limit(Bytes limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }
  Bytes limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  Bytes held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Bytes> limit_{unlimited};
  std::atomic<Bytes> held_{0};
};

/// Charges segments and physical memory to a budget, and refuses with `over_limit`, without asking
/// the device, what the budget does not allow. Address space and mappings are free. Physical memory
/// is credited when it is destroyed: unmap it first, or it lives on unaccounted.
class LimitedDevice final : public ForwardingDevice {
 public:
  /// `inner` and `budget` outlive this device.
  LimitedDevice(Device& inner, Budget& budget) noexcept
      : ForwardingDevice(inner), budget_(budget) {}

  Status allocate_segment(Bytes size, Address* out) noexcept override;
  Status release_segment(Address address, Bytes size) noexcept override;
  Status create(Bytes size, Physical* out) noexcept override;
  Status destroy(Physical memory, Bytes size) noexcept override;

  /// The device's memory is gone as a whole: credits all that is still charged.
  void abandon() noexcept { credit(unlimited); }

 private:
  template <class Call>
  Status charged(Bytes size, Call call) noexcept;
  void credit(Bytes size) noexcept;

  Budget& budget_;
  std::atomic<Bytes> charged_{0};  // this device's part of what the budget holds
};

}  // namespace fragshim
