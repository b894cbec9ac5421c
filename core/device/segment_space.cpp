#include "core/device/segment_space.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

namespace fragshim {
namespace {

constexpr Bytes region_unit = 32 * MiB;
constexpr Bytes system_page = 4 * KiB;

// What a context leaves free of its own regions, seen in every process looked at.
constexpr Bytes context_pieces[] = {24 * MiB, 2 * MiB};

Bytes longest_piece(const std::map<Address, Bytes>& pieces) {
  Bytes longest = 0;
  for (const auto& [address, size] : pieces) longest = std::max(longest, size);
  return longest;
}

std::size_t power_of(Bytes size) { return static_cast<std::size_t>(std::bit_width(size)) - 1; }

}  // namespace

SegmentSpace::SegmentSpace(Address start, Bytes size) : gaps_(start, size) {
  for (const Bytes piece : context_pieces) {
    const auto base = gaps_.take_highest(region_unit, 0);
    if (!base) return;
    const auto region = add(*base, region_unit);
    region->second.permanent = true;
    region->second.free.emplace(*base + region_unit - piece, piece);
    index(region->second, *base);
  }
}

std::optional<Address> SegmentSpace::take(Bytes size) {
  auto region = newest_with(size);
  if (region == regions_.end()) {
    const Bytes length = round_up(size, region_unit);
    const auto base = gaps_.take_highest(length, region_unit - system_page);
    if (!base) return std::nullopt;
    region = add(*base, length);
    region->second.free.emplace(*base, length);
  } else {
    unindex(region->second);
  }
  std::map<Address, Bytes>& free = region->second.free;
  auto piece = free.end();
  for (auto at = free.begin(); at != free.end(); ++at) {
    const bool fits = at->second >= size;
    if (fits && (piece == free.end() || at->second < piece->second)) piece = at;
  }
  const Address address = piece->first;
  const Bytes rest = piece->second - size;
  free.erase(piece);
  if (rest > 0) free.emplace(address + size, rest);
  index(region->second, region->first);
  return address;
}

void SegmentSpace::give(Address address, Bytes size) {
  const auto at = std::prev(regions_.upper_bound(address));
  Region& region = at->second;
  unindex(region);
  auto piece = region.free.emplace(address, size).first;
  const auto next = std::next(piece);
  if (next != region.free.end() && address + size == next->first) {
    piece->second += next->second;
    region.free.erase(next);
  }
  if (piece != region.free.begin()) {
    const auto previous = std::prev(piece);
    if (previous->first + previous->second == address) {
      previous->second += piece->second;
      region.free.erase(piece);
    }
  }
  if (!region.permanent && region.free.begin()->second == region.size) {
    gaps_.give(at->first, region.size);
    regions_.erase(at);
    return;
  }
  index(region, at->first);
}

/// The newest region with a free piece of `size` bytes, or end.
SegmentSpace::Regions::iterator SegmentSpace::newest_with(Bytes size) {
  auto best = regions_.end();
  for (std::size_t power = power_of(size); power < by_power_.size(); ++power) {
    for (auto at = by_power_[power].rbegin(); at != by_power_[power].rend(); ++at) {
      if (best != regions_.end() && at->first < best->second.born) break;
      const auto region = regions_.find(at->second);
      if (longest_piece(region->second.free) < size) continue;
      best = region;
      break;
    }
  }
  return best;
}

SegmentSpace::Regions::iterator SegmentSpace::add(Address base, Bytes size) {
  return regions_.emplace(base, Region{size, ++births_, false, {}}).first;
}

void SegmentSpace::index(const Region& region, Address base) {
  if (!region.free.empty()) by_power_[power_of(longest_piece(region.free))][region.born] = base;
}

void SegmentSpace::unindex(const Region& region) {
  if (!region.free.empty()) by_power_[power_of(longest_piece(region.free))].erase(region.born);
}

}  // namespace fragshim
