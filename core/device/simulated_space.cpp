#include "core/device/simulated_space.hpp"

#include <bit>
#include <iterator>

namespace fragshim {
namespace {

std::size_t power_of(Bytes size) { return static_cast<std::size_t>(std::bit_width(size)) - 1; }

}  // namespace

std::optional<Address> AddressSpace::take(Bytes size, Bytes alignment) {
  if (size == 0) return std::nullopt;
  Address best = 0;
  Address best_range = 0;
  bool found = false;
  for (std::size_t power = power_of(size); power < by_power_.size(); ++power) {
    for (const auto& [start, length] : by_power_[power]) {
      if (found && start > best_range) break;
      const Address aligned = round_up(start, alignment);
      if (aligned - start > length || length - (aligned - start) < size) continue;
      best = aligned;
      best_range = start;
      found = true;
      break;
    }
  }
  if (!found) return std::nullopt;
  take_at(best, size);
  return best;
}

std::optional<Address> AddressSpace::take_highest(Bytes size, Bytes spare) {
  if (size == 0) return std::nullopt;
  Address best = 0;
  bool found = false;
  for (std::size_t power = power_of(size + spare); power < by_power_.size(); ++power) {
    for (auto at = by_power_[power].rbegin(); at != by_power_[power].rend(); ++at) {
      const auto& [start, length] = *at;
      if (found && start < best) break;
      if (length < size + spare) continue;
      best = start + length - size;
      found = true;
      break;
    }
  }
  if (!found) return std::nullopt;
  take_at(best, size);
  return best;
}

bool AddressSpace::take_at(Address start, Bytes size) {
  auto range = ranges_.upper_bound(start);
  if (size == 0 || range == ranges_.begin()) return false;
  --range;
  const Address range_start = range->first;
  const Address range_end = range_start + range->second;
  if (start >= range_end || range_end - start < size) return false;
  erase(range);
  if (start > range_start) insert(range_start, start - range_start);
  if (start + size < range_end) insert(start + size, range_end - (start + size));
  return true;
}

void AddressSpace::give(Address start, Bytes size) {
  auto next = ranges_.lower_bound(start);
  if (next != ranges_.end() && next->first == start + size) {
    size += next->second;
    const auto after = std::next(next);
    erase(next);
    next = after;
  }
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      start = previous->first;
      size += previous->second;
      erase(previous);
    }
  }
  insert(start, size);
}

void AddressSpace::insert(Address start, Bytes size) {
  if (size == 0) return;
  ranges_.emplace(start, size);
  by_power_[power_of(size)].emplace(start, size);
}

void AddressSpace::erase(std::map<Address, Bytes>::iterator range) {
  by_power_[power_of(range->second)].erase(range->first);
  ranges_.erase(range);
}

}  // namespace fragshim
