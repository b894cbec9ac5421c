#include "core/device/limited.hpp"

#include <algorithm>

namespace fragshim {

bool Budget::take(Bytes size) noexcept {
  Bytes held = held_.load(std::memory_order_relaxed);
  do {
    const Bytes limit = limit_.load(std::memory_order_relaxed);
    if (held > limit || size > limit - held) return false;
  } while (!held_.compare_exchange_weak(held, held + size, std::memory_order_relaxed));
  return true;
}

template <class Call>
Status LimitedDevice::charged(Bytes size, Call call) noexcept {
  if (!budget_.take(size)) return {Outcome::over_limit};
  charged_.fetch_add(size, std::memory_order_relaxed);
  const Status status = call();
  if (!status.ok()) credit(size);
  return status;
}

// Never more than is charged: a release may come after abandon() has credited everything.
void LimitedDevice::credit(Bytes size) noexcept {
  Bytes charged = charged_.load(std::memory_order_relaxed);
  Bytes part;
  do {
    part = std::min(size, charged);
  } while (!charged_.compare_exchange_weak(charged, charged - part, std::memory_order_relaxed));
  budget_.give(part);
}

Status LimitedDevice::allocate_segment(Bytes size, Address* out) noexcept {
  return charged(size, [&] { return inner_.allocate_segment(size, out); });
}

Status LimitedDevice::release_segment(Address address, Bytes size) noexcept {
  const Status status = inner_.release_segment(address, size);
  if (status.ok()) credit(size);
  return status;
}

Status LimitedDevice::create(Bytes size, Physical* out) noexcept {
  return charged(size, [&] { return inner_.create(size, out); });
}

Status LimitedDevice::destroy(Physical memory, Bytes size) noexcept {
  const Status status = inner_.destroy(memory, size);
  if (status.ok()) credit(size);
  return status;
}

}  // namespace fragshim
