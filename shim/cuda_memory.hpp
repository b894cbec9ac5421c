// The virtual memory of one context on one GPU: address ranges, physical memory, mappings, and who
// may use them.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device/device.hpp"

namespace fragshim {

/// The GPUs, besides its own, that may use a GPU's stream-ordered memory: what the program asked of
/// the default pool with cuMemPoolSetAccess. Thread-safe.
class PeerAccess {
 public:
  static constexpr std::size_t max_peers = 64;
  struct List {
    std::array<CUmemAccessDesc, max_peers + 1> entries;  // one more for the GPU itself
    std::size_t size = 0;
    std::uint64_t version = 0;
  };

  /// Takes over what the driver has accepted for the pool; access withdrawn leaves the list.
  void set(const CUmemAccessDesc* access, std::size_t count) noexcept;
  List list() const noexcept;
  /// Changes with every set().
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  void set_one(const CUmemAccessDesc& access) noexcept;

  mutable std::mutex mutex_;
  List list_{};
  std::atomic<std::uint64_t> version_{0};
};

/// Thread-safe. No lock on its records is held across a call of the driver; the calls that map
/// memory are made one at a time in the whole process. Calls need no current context.
class CudaMemory {
 public:
  /// `peers` outlives this object.
  CudaMemory(CUdevice device, const PeerAccess& peers) noexcept;

  /// In bytes; 0 where the GPU or the driver has no virtual memory management.
  Bytes granularity() const noexcept { return granularity_; }
  CUresult reserve(Bytes size, Address* out) noexcept;
  CUresult unreserve(Address address, Bytes size) noexcept;
  CUresult create(Bytes size, Physical* out) noexcept;
  CUresult destroy(Physical memory) noexcept;
  CUresult map(Address address, Bytes size, Physical memory) noexcept;
  CUresult unmap(Address address, Bytes size) noexcept;

  /// Applies a change of access to every mapping there is; `peers` knows it already, for later
  /// ones. The first error is returned, after all have been tried.
  CUresult apply_access(const CUmemAccessDesc* access, std::size_t count) noexcept;

  /// Unmaps and releases all there is. Physical memory belongs to the GPU and would outlive the
  /// context that used it.
  void release_all() noexcept;

 private:
  struct Mapping {
    Bytes size;
    bool ready;  // mapped, with the access of the present version of `peers`
  };

  CUresult give_access(Address address, Bytes size) noexcept;
  std::vector<std::pair<Address, Bytes>> ready_mappings() const;
  bool is_mapped(Address address) const noexcept;

  const PeerAccess& peers_;
  CUmemAllocationProp properties_{};
  Bytes granularity_ = 0;
  mutable std::mutex mutex_;
  std::map<Address, Bytes> ranges_;
  std::map<std::uint64_t, Bytes> physical_;
  std::map<Address, Mapping> mappings_;
};

}  // namespace fragshim
