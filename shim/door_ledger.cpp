#include "shim/door_ledger.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

namespace fragshim {

void Ledger::hold(Bytes size) noexcept {
  Counters& now = counters_;
  now.requested = now.allocated = now.reserved += size;
  now.requested_peak = std::max(now.requested_peak, now.requested);
  now.allocated_peak = std::max(now.allocated_peak, now.allocated);
  now.reserved_peak = std::max(now.reserved_peak, now.reserved);
  now.live_blocks = entries_.size();
}

void Ledger::drop(Bytes size) noexcept {
  counters_.requested = counters_.allocated = counters_.reserved -= size;
  counters_.live_blocks = entries_.size();
}

void Ledger::add(Address address, Bytes size, StreamId stream) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    Entry& entry = entries_[address];
    drop(entry.size);  // an address given anew was freed where nobody saw it
    entry = {size, stream};
  } catch (const std::bad_alloc&) {
    return;
  }
  ++counters_.allocations;
  ++counters_.device_alloc;
  hold(size);
}

bool Ledger::remove(Address address, Entry* entry) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(address);
  if (found == entries_.end()) return false;
  *entry = found->second;
  entries_.erase(found);
  ++counters_.frees;
  ++counters_.device_free;
  drop(entry->size);
  return true;
}

void Ledger::restore(Address address, const Entry& entry) noexcept {
  add(address, entry.size, entry.stream);
  const std::lock_guard lock(mutex_);
  --counters_.allocations;
  --counters_.device_alloc;
  --counters_.frees;
  --counters_.device_free;
}

void Ledger::clear() noexcept {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  drop(counters_.reserved);
}

bool Ledger::contains(Address address) const noexcept {
  const std::lock_guard lock(mutex_);
  auto after = entries_.upper_bound(address);
  if (after == entries_.begin()) return false;
  --after;
  return address - after->first < after->second.size;
}

void Ledger::reset_peaks(bool allocated, bool reserved) noexcept {
  const std::lock_guard lock(mutex_);
  if (allocated) {
    counters_.allocated_peak = counters_.allocated;
    counters_.requested_peak = counters_.requested;
  }
  if (reserved) counters_.reserved_peak = counters_.reserved;
}

Counters Ledger::counters() const noexcept {
  const std::lock_guard lock(mutex_);
  return counters_;
}

Usage Ledger::usage() const noexcept {
  const std::lock_guard lock(mutex_);
  Usage usage;
  static_cast<Counters&>(usage) = counters_;
  usage.segments = entries_.size();
  try {
    std::set<StreamId> streams;
    for (const auto& [address, entry] : entries_) streams.insert(entry.stream);
    usage.streams = streams.size();
  } catch (const std::bad_alloc&) {
    usage.streams = 0;
  }
  return usage;
}

void Ledger::walk(BlockVisitor& visitor) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, entry] : entries_) {
    visitor.visit({address, entry.size, entry.size, address, entry.stream, BlockState::live});
  }
}

bool Ledger::check(std::string* why) const {
  const std::lock_guard lock(mutex_);
  Bytes sum = 0;
  for (const auto& [address, entry] : entries_) sum += entry.size;
  const bool sound = sum == counters_.reserved && entries_.size() == counters_.live_blocks;
  if (!sound && why != nullptr) *why = "the ledger's totals differ from its entries";
  return sound;
}

}  // namespace fragshim
