// A device that does not map some of its memory a second time, as CUDA's driver was seen to do.
#pragma once

#include <map>

#include "core/device/forwarding.hpp"

namespace fragshim {

class StubbornDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  /// One handle in so many is not mapped again while it is mapped already; 0: each one is.
  void refuse_one_in(std::uint64_t handles) { one_in_ = handles; }
  int refusals() const { return refusals_; }

  Status map(Address address, Bytes size, Physical memory) noexcept override {
    const bool stubborn = one_in_ != 0 && memory.handle % one_in_ == 0;
    if (stubborn && mapped(memory)) {
      ++refusals_;
      return {Outcome::failed, 999};
    }
    const Status status = inner_.map(address, size, memory);
    if (status.ok()) mappings_[address] = memory.handle;
    return status;
  }
  Status unmap(Address address, Bytes size) noexcept override {
    const Status status = inner_.unmap(address, size);
    if (status.ok()) mappings_.erase(address);
    return status;
  }

 private:
  bool mapped(Physical memory) const {
    for (const auto& [address, handle] : mappings_) {
      if (handle == memory.handle) return true;
    }
    return false;
  }

  std::uint64_t one_in_ = 0;
  int refusals_ = 0;
  std::map<Address, std::uint64_t> mappings_;
};

}  // namespace fragshim
