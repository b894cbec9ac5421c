// A device that hands every call to another: the base of those that add one thing to a few calls.
#pragma once

#include "core/device/device.hpp"

namespace fragshim {

class ForwardingDevice : public Device {
 public:
  /// `inner` outlives this device.
  explicit ForwardingDevice(Device& inner) noexcept : inner_(inner) {}

  Status allocate_segment(Bytes size, Address* out) noexcept override {
    return inner_.allocate_segment(size, out);
  }
  Status release_segment(Address address, Bytes size) noexcept override {
    return inner_.release_segment(address, size);
  }
  Bytes granularity() const noexcept override { return inner_.granularity(); }
  bool has_context_fences() const noexcept override { return inner_.has_context_fences(); }
  Status reserve(Bytes size, Address* out) noexcept override { return inner_.reserve(size, out); }
  Status unreserve(Address address, Bytes size) noexcept override {
    return inner_.unreserve(address, size);
  }
  Status create(Bytes size, Physical* out) noexcept override { return inner_.create(size, out); }
  Status destroy(Physical memory, Bytes size) noexcept override {
    return inner_.destroy(memory, size);
  }
  Status map(Address address, Bytes size, Physical memory) noexcept override {
    return inner_.map(address, size, memory);
  }
  Status unmap(Address address, Bytes size) noexcept override {
    return inner_.unmap(address, size);
  }
  Status record(StreamId stream, Fence* out) noexcept override {
    return inner_.record(stream, out);
  }
  Status query(Fence fence) noexcept override { return inner_.query(fence); }
  Status wait(Fence fence) noexcept override { return inner_.wait(fence); }
  Status stream_wait(StreamId stream, Fence fence) noexcept override {
    return inner_.stream_wait(stream, fence);
  }
  void retire(Fence fence) noexcept override { inner_.retire(fence); }
  Status synchronize() noexcept override { return inner_.synchronize(); }
  Status memory_info(Bytes* free, Bytes* total) noexcept override {
    return inner_.memory_info(free, total);
  }

 protected:
  Device& inner_;
};

}  // namespace fragshim
