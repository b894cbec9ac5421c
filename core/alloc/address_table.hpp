// A hash map from 64-bit keys to pointers: open addressing, linear probing, host memory of its own.
#pragma once

#include <sys/mman.h>

#include "core/alloc/pool.hpp"
#include "core/types.hpp"

namespace fragshim {

/// Maps addresses (or stream ids) to T. Not thread-safe. A null value is no entry.
template <class T>
class AddressTable {
 public:
  AddressTable() = default;
  AddressTable(const AddressTable&) = delete;
  AddressTable& operator=(const AddressTable&) = delete;
  ~AddressTable() { release(); }

  T* find(std::uint64_t key) const noexcept {
    if (entries_ == nullptr) return nullptr;
    for (std::size_t at = home(key);; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.value == nullptr || entry.key == key) return entry.value;
    }
  }

  /// Brings the place of `key` nearer, for a caller who will soon come for it.
  void prefetch(std::uint64_t key) const noexcept {
    if (entries_ != nullptr) __builtin_prefetch(&entries_[home(key)], 1);
  }

  /// Makes sure that the next insert succeeds. False: the host has no memory.
  bool prepare() noexcept { return entries_ != nullptr && size_ < limit() ? true : grow(); }

  /// Adds a key that is not yet there. False: the host has no memory, and nothing has changed.
  bool insert(std::uint64_t key, T* value) noexcept {
    if (!prepare()) return false;
    std::size_t at = home(key);
    while (entries_[at].value != nullptr) at = (at + 1) & mask_;
    entries_[at] = {key, value};
    ++size_;
    return true;
  }

  /// Removes a key; null if it was not there, else what it mapped to.
  T* erase(std::uint64_t key) noexcept {
    if (entries_ == nullptr) return nullptr;
    std::size_t at = home(key);
    while (entries_[at].value != nullptr && entries_[at].key != key) at = (at + 1) & mask_;
    T* value = entries_[at].value;
    if (value == nullptr) return nullptr;
    close_gap(at);
    --size_;
    return value;
  }

  std::size_t size() const noexcept { return size_; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t at = 0; entries_ != nullptr && at <= mask_; ++at) {
      if (entries_[at].value != nullptr) visit(entries_[at].key, entries_[at].value);
    }
  }

 private:
  struct Entry {
    std::uint64_t key;
    T* value;
  };
  static constexpr std::size_t first_capacity = 1024;

  std::size_t limit() const { return (mask_ + 1) / 2; }

  std::size_t home(std::uint64_t key) const {
    // Addresses differ in their upper bits only; the multiplication spreads them to the top.
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }

  /// Moves later entries of the run back, so that every one can still be reached from its home.
  void close_gap(std::size_t gap) noexcept {
    for (std::size_t at = (gap + 1) & mask_; entries_[at].value != nullptr; at = (at + 1) & mask_) {
      if (((at - home(entries_[at].key)) & mask_) >= ((at - gap) & mask_)) {
        entries_[gap] = entries_[at];
        gap = at;
      }
    }
    entries_[gap].value = nullptr;
  }

  bool grow() noexcept {
    const std::size_t capacity = entries_ == nullptr ? first_capacity : (mask_ + 1) * 2;
    auto* fresh = static_cast<Entry*>(map_host_memory(capacity * sizeof(Entry)));
    if (fresh == nullptr) return false;
    Entry* old = entries_;
    const std::size_t old_capacity = old == nullptr ? 0 : mask_ + 1;
    entries_ = fresh;
    mask_ = capacity - 1;
    shift_ = 64u - static_cast<unsigned>(__builtin_ctzll(capacity));
    for (std::size_t i = 0; i < old_capacity; ++i) {
      if (old[i].value == nullptr) continue;
      std::size_t at = home(old[i].key);
      while (entries_[at].value != nullptr) at = (at + 1) & mask_;
      entries_[at] = old[i];
    }
    if (old != nullptr) munmap(old, old_capacity * sizeof(Entry));
    return true;
  }

  void release() noexcept {
    if (entries_ != nullptr) munmap(entries_, (mask_ + 1) * sizeof(Entry));
    entries_ = nullptr;
  }

  Entry* entries_ = nullptr;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  unsigned shift_ = 64;
};

}  // namespace fragshim
