#include "core/analyze/driver_layout.hpp"

#include <algorithm>
#include <iterator>
#include <new>

namespace fragshim {

namespace {

constexpr Bytes area_unit = 32 * MiB;
constexpr Bytes page = 2 * MiB;
// Only the order of addresses counts, so the top may lie anywhere.
constexpr Address top = Address{0x7f} << 40;
constexpr Address bottom = Address{1} << 40;

/// Adds a range to others, joined with its neighbours. Returns the range that it lies in now.
std::map<Address, Bytes>::iterator join(std::map<Address, Bytes>* ranges, Address start,
                                        Bytes size) {
  auto next = ranges->lower_bound(start);
  if (next != ranges->end() && next->first == start + size) {
    size += next->second;
    next = ranges->erase(next);
  }
  if (next != ranges->begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == start) {
      previous->second += size;
      return previous;
    }
  }
  return ranges->emplace_hint(next, start, size);
}

Bytes largest_of(const std::map<Address, Bytes>& ranges) {
  Bytes largest = 0;
  for (const auto& [start, size] : ranges) largest = std::max(largest, size);
  return largest;
}

}  // namespace

DriverLayout::DriverLayout() : gaps_{{bottom, top - bottom}} {
  add_context_area(top + 0x1e800000, 24 * MiB);
  add_context_area(top + 0x19e00000, 2 * MiB);
}

void DriverLayout::add_context_area(Address address, Bytes room) {
  areas_.push_front({address, 0, room, {{address, room}}});
}

std::optional<Address> DriverLayout::place(Bytes size) {
  size = round_up(size, page);
  auto area = std::find_if(areas_.begin(), areas_.end(),
                           [size](const Area& one) { return one.largest >= size; });
  if (area == areas_.end()) {
    const Bytes length = round_up(size, area_unit);
    const auto start = reserve(length);
    if (!start) return std::nullopt;
    areas_.push_front({*start, length, length, {{*start, length}}});
    area = areas_.begin();
  }
  const Address address = place_in(area, size);
  segments_.emplace(address, Segment{size, area});
  return address;
}

Address DriverLayout::place_in(Areas::iterator area, Bytes size) {
  auto best = area->holes.end();
  for (auto hole = area->holes.begin(); hole != area->holes.end(); ++hole) {
    if (hole->second < size) continue;
    if (best == area->holes.end() || hole->second < best->second) best = hole;
  }
  const auto [address, room] = *best;
  area->holes.erase(best);
  if (room > size) area->holes.emplace(address + size, room - size);
  area->largest = largest_of(area->holes);
  return address;
}

void DriverLayout::remove(Address address) {
  const auto found = segments_.find(address);
  if (found == segments_.end()) return;
  const auto [size, area] = found->second;
  segments_.erase(found);
  const auto hole = join(&area->holes, address, size);
  area->largest = std::max(area->largest, hole->second);
  if (area->size != 0 && hole->second == area->size) {
    unreserve(area->start, area->size);
    areas_.erase(area);
  }
}

std::optional<Address> DriverLayout::reserve(Bytes size) {
  for (auto gap = gaps_.rbegin(); gap != gaps_.rend(); ++gap) {
    if (gap->second <= size) continue;
    gap->second -= size;
    return gap->first + gap->second;
  }
  return std::nullopt;
}

void DriverLayout::unreserve(Address start, Bytes size) { join(&gaps_, start, size); }

Status DriverLayoutDevice::allocate_segment(Bytes size, Address* out) noexcept {
  Address inner = 0;
  const Status status = ForwardingDevice::allocate_segment(size, &inner);
  if (!status.ok()) return status;
  try {
    const auto address = layout_.place(size);
    if (address) {
      inner_address_.emplace(*address, inner);
      *out = *address;
      return status;
    }
  } catch (const std::bad_alloc&) {
  }
  ForwardingDevice::release_segment(inner, size);
  return {Outcome::out_of_memory};
}

Status DriverLayoutDevice::release_segment(Address address, Bytes size) noexcept {
  const auto found = inner_address_.find(address);
  if (found == inner_address_.end()) return {Outcome::not_owned};
  const Status status = ForwardingDevice::release_segment(found->second, size);
  if (!status.ok()) return status;
  inner_address_.erase(found);
  layout_.remove(address);
  return status;
}

}  // namespace fragshim
