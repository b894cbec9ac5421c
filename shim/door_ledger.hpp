// What passed through to the driver and is alive: for the metrics, where the shim serves nothing.
#pragma once

#include <map>
#include <mutex>

#include "core/alloc/heap.hpp"

namespace fragshim {

/// A heap to look at: every allocation of the driver's is a segment with one block. It serves
/// nothing itself.
class Ledger final : public Heap {
 public:
  /// The driver has given `size` bytes at `address`. Forgotten where the host has no memory.
  void add(Address address, Bytes size, StreamId stream) noexcept;

  struct Entry {
    Bytes size = 0;
    StreamId stream = 0;
  };
  /// Takes an allocation out, before the driver is asked to free it and may give its address to
  /// another thread. False where it is not listed.
  bool remove(Address address, Entry* entry) noexcept;
  /// Puts it back: the driver refused to free it.
  void restore(Address address, const Entry& entry) noexcept;

  /// The context is gone, with all memory in it.
  void clear() noexcept;

  Grant allocate(Bytes, StreamId) noexcept override { return {0, {Outcome::unsupported}}; }
  Status free(Address, StreamId) noexcept override { return {Outcome::not_owned}; }
  Bytes trim(Bytes) noexcept override { return 0; }
  bool contains(Address address) const noexcept override;
  void reset_peaks(bool allocated, bool reserved) noexcept override;
  Counters counters() const noexcept override;
  Usage usage() const noexcept override;
  void walk(BlockVisitor& visitor) const override;
  bool check(std::string* why) const override;

 private:
  void hold(Bytes size) noexcept;
  void drop(Bytes size) noexcept;

  mutable std::mutex mutex_;
  std::map<Address, Entry> entries_;
  Counters counters_;
};

}  // namespace fragshim
