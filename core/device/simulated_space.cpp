#include "core/device/simulated_space.hpp"

#include <iterator>

namespace fragshim {

std::optional<Address> AddressSpace::take(Bytes size, Bytes alignment) {
  std::optional<Address> best;
  for (auto sized = by_size_.lower_bound(size); sized != by_size_.end(); ++sized) {
    for (const Address start : sized->second) {
      if (best && start > *best) break;
      const Address aligned = round_up(start, alignment);
      if (aligned - start > sized->first - size) continue;
      best = aligned;
      break;
    }
  }
  if (size == 0 || !best) return std::nullopt;
  take_at(*best, size);
  return best;
}

std::optional<Address> AddressSpace::take_tightest(Bytes size) {
  const auto sized = by_size_.lower_bound(size);
  if (size == 0 || sized == by_size_.end()) return std::nullopt;
  const Address address = *sized->second.begin();
  take_at(address, size);
  return address;
}

std::optional<Address> AddressSpace::take_highest(Bytes size, Bytes spare) {
  std::optional<Address> best;
  for (auto sized = by_size_.lower_bound(size + spare); sized != by_size_.end(); ++sized) {
    const Address end = *sized->second.rbegin() + sized->first;
    if (!best || end - size > *best) best = end - size;
  }
  if (size == 0 || !best) return std::nullopt;
  take_at(*best, size);
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
  by_size_[size].insert(start);
}

void AddressSpace::erase(std::map<Address, Bytes>::iterator range) {
  const auto sized = by_size_.find(range->second);
  sized->second.erase(range->first);
  if (sized->second.empty()) by_size_.erase(sized);
  ranges_.erase(range);
}

}  // namespace fragshim
