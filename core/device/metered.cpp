#include "core/device/metered.hpp"

#include <chrono>

namespace fragshim {

template <class Call>
Status MeteredDevice::timed(Count* count, Call call) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const Status status = call();
  const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
  device_time_ns_.fetch_add(static_cast<std::uint64_t>(spent.count()), std::memory_order_relaxed);
  if (count != nullptr && status.ok()) count->fetch_add(1, std::memory_order_relaxed);
  return status;
}

Status MeteredDevice::allocate_segment(Bytes size, Address* out) noexcept {
  return timed(&device_alloc_, [&] { return inner_.allocate_segment(size, out); });
}

Status MeteredDevice::release_segment(Address address, Bytes size) noexcept {
  return timed(&device_free_, [&] { return inner_.release_segment(address, size); });
}

Status MeteredDevice::reserve(Bytes size, Address* out) noexcept {
  return timed(nullptr, [&] { return inner_.reserve(size, out); });
}

Status MeteredDevice::unreserve(Address address, Bytes size) noexcept {
  return timed(nullptr, [&] { return inner_.unreserve(address, size); });
}

Status MeteredDevice::create(Bytes size, Physical* out) noexcept {
  return timed(&device_alloc_, [&] { return inner_.create(size, out); });
}

Status MeteredDevice::destroy(Physical memory, Bytes size) noexcept {
  return timed(&device_free_, [&] { return inner_.destroy(memory, size); });
}

Status MeteredDevice::map(Address address, Bytes size, Physical memory) noexcept {
  return timed(nullptr, [&] { return inner_.map(address, size, memory); });
}

Status MeteredDevice::unmap(Address address, Bytes size) noexcept {
  return timed(nullptr, [&] { return inner_.unmap(address, size); });
}

Meter MeteredDevice::meter() const noexcept {
  return {device_alloc_.load(std::memory_order_relaxed),
          device_free_.load(std::memory_order_relaxed),
          device_time_ns_.load(std::memory_order_relaxed)};
}

}  // namespace fragshim
