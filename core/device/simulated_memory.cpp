#include "core/device/simulated_memory.hpp"

#include <algorithm>

namespace fragshim {
namespace {

constexpr Bytes page_size = SharedPages::page_size;
constexpr Bytes small_limit = MiB;  // up to here segments share pages

constexpr Status fine{};
constexpr Status no_room{Outcome::out_of_memory, 0};
constexpr Status not_ours{Outcome::not_owned, 0};
constexpr Status invalid{Outcome::failed, 0};
constexpr Status cannot{Outcome::unsupported, 0};

bool is_small(Bytes size) { return size <= small_limit; }

/// The range in `ranges` (start → something with a size) that holds `address`, or end.
template <typename Map, typename Size>
typename Map::const_iterator holder(const Map& ranges, Address address, Size size_of) {
  auto range = ranges.upper_bound(address);
  if (range == ranges.begin()) return ranges.end();
  --range;
  return address - range->first < size_of(range->second) ? range : ranges.end();
}

}  // namespace

SimulatedMemory::SimulatedMemory(const MemoryOptions& options)
    : options_(options),
      segment_space_(options.base, options.address_space / 4),
      reservation_space_(options.base + options.address_space / 4, options.address_space / 4 * 3),
      physical_space_(0, Bytes{1} << 50) {}

Status SimulatedMemory::allocate_segment(Bytes size, Address* out) {
  if (size == 0) return invalid;
  if (!options_.charge_pages && !fits(size)) return no_room;
  const auto address = is_small(size) ? allocate_small(size) : allocate_large(size);
  if (!address) return no_room;
  if (!options_.charge_pages) used_ += size;
  *out = *address;
  return fine;
}

std::optional<Address> SimulatedMemory::allocate_small(Bytes size) {
  auto address = shared_pages_.take(size);
  if (!address) {
    if (options_.charge_pages && !fits(page_size)) return std::nullopt;
    Address physical = 0;
    const auto page = take_backed(page_size, &physical);
    if (!page) return std::nullopt;
    if (options_.charge_pages) used_ += page_size;
    pages_.emplace(*page, physical);
    shared_pages_.add(*page);
    address = shared_pages_.take(size);
  }
  const Bytes offset = *address % page_size;
  segments_.emplace(*address, SegmentState{size, pages_.at(*address - offset) + offset});
  return address;
}

std::optional<Address> SimulatedMemory::allocate_large(Bytes size) {
  const Bytes length = round_up(size, page_size);
  if (options_.charge_pages && !fits(length)) return std::nullopt;
  Address physical = 0;
  const auto address = take_backed(length, &physical);
  if (!address) return std::nullopt;
  if (options_.charge_pages) used_ += length;
  segments_.emplace(*address, SegmentState{size, physical});
  return address;
}

Status SimulatedMemory::release_segment(Address address, Bytes size) {
  const auto found = segments_.find(address);
  if (found == segments_.end()) return not_ours;
  const SegmentState segment = found->second;
  if (segment.size != size) return invalid;
  segments_.erase(found);
  if (!options_.charge_pages) used_ -= size;
  if (is_small(size)) {
    release_small(address, size);
  } else {
    const Bytes length = round_up(size, page_size);
    if (options_.charge_pages) used_ -= length;
    give_backed(address, length, segment.physical);
  }
  return fine;
}

void SimulatedMemory::release_small(Address address, Bytes size) {
  if (!shared_pages_.give(address, size)) return;
  const auto page = pages_.find(round_down(address, page_size));
  give_backed(page->first, page_size, page->second);
  if (options_.charge_pages) used_ -= page_size;
  pages_.erase(page);
}

/// Addresses for a segment, with physical memory behind them.
std::optional<Address> SimulatedMemory::take_backed(Bytes size, Address* physical) {
  const auto address = segment_space_.take(size);
  if (!address) return std::nullopt;
  const auto memory = physical_space_.take_tightest(size);
  if (memory && (options_.backing == nullptr || options_.backing->map(*address, size, *memory))) {
    *physical = *memory;
    return address;
  }
  if (memory) physical_space_.give(*memory, size);
  segment_space_.give(*address, size);
  return std::nullopt;
}

void SimulatedMemory::give_backed(Address address, Bytes size, Address physical) {
  if (options_.backing != nullptr) {
    options_.backing->unmap(address, size);
    options_.backing->discard(physical, size);
  }
  segment_space_.give(address, size);
  physical_space_.give(physical, size);
}

Status SimulatedMemory::reserve(Bytes size, Bytes alignment, Address* out) {
  if (options_.granularity == 0) return cannot;
  if (size == 0 || size % options_.granularity != 0) return invalid;
  const auto address = reservation_space_.take(size, std::max(alignment, options_.granularity));
  if (!address) return no_room;
  reservations_.emplace(*address, size);
  *out = *address;
  return fine;
}

Status SimulatedMemory::unreserve(Address address, Bytes size) {
  const auto found = reservations_.find(address);
  if (found == reservations_.end()) return not_ours;
  if (found->second != size || mappings_in(address, size) != 0) return invalid;
  reservations_.erase(found);
  reservation_space_.give(address, size);
  return fine;
}

Status SimulatedMemory::create(Bytes size, Physical* out) {
  if (options_.granularity == 0) return cannot;
  if (size == 0 || size % options_.granularity != 0) return invalid;
  if (!fits(size)) return no_room;
  const auto physical = physical_space_.take_tightest(size);
  if (!physical) return no_room;
  used_ += size;
  out->handle = next_handle_++;
  physicals_.emplace(out->handle, PhysicalState{size, *physical, 0, true});
  return fine;
}

Status SimulatedMemory::destroy(Physical memory) {
  const auto found = physicals_.find(memory.handle);
  if (found == physicals_.end() || !found->second.held) return not_ours;
  found->second.held = false;
  drop_if_unused(found);
  return fine;
}

void SimulatedMemory::drop_if_unused(std::map<std::uint64_t, PhysicalState>::iterator memory) {
  const PhysicalState& state = memory->second;
  if (state.held || state.mappings != 0) return;
  used_ -= state.size;
  if (options_.backing != nullptr) options_.backing->discard(state.physical, state.size);
  physical_space_.give(state.physical, state.size);
  physicals_.erase(memory);
}

Status SimulatedMemory::map(Address address, Bytes size, Physical memory) {
  if (options_.granularity == 0) return cannot;
  const auto found = physicals_.find(memory.handle);
  if (found == physicals_.end() || !found->second.held) return not_ours;
  if (size == 0 || size % options_.granularity != 0 || address % options_.granularity != 0) {
    return invalid;
  }
  if (size != found->second.size) return size < found->second.size ? cannot : invalid;
  if (!reserved(address, size) || mapped(address, size)) return invalid;
  if (options_.backing != nullptr &&
      !options_.backing->map(address, size, found->second.physical)) {
    return no_room;
  }
  ++found->second.mappings;
  mappings_.emplace(address, Mapping{size, memory.handle});
  return fine;
}

Status SimulatedMemory::unmap(Address address, Bytes size) {
  const auto first = mappings_.find(address);
  const Address end = address + size;
  // Several mappings may go in one call, but each whole and without a gap.
  Address covered = address;
  auto last = first;
  while (last != mappings_.end() && last->first == covered && covered < end) {
    covered += last->second.size;
    ++last;
  }
  if (size == 0 || covered != end) return invalid;
  for (auto mapping = first; mapping != last; mapping = mappings_.erase(mapping)) {
    if (options_.backing != nullptr) {
      options_.backing->unmap(mapping->first, mapping->second.size);
    }
    const auto memory = physicals_.find(mapping->second.handle);
    --memory->second.mappings;
    drop_if_unused(memory);
  }
  return fine;
}

bool SimulatedMemory::reserved(Address address, Bytes size) const {
  const auto found = reservation_of(address);
  return found && size <= found->size - (address - found->address);
}

/// Whether any part of the range is mapped.
bool SimulatedMemory::mapped(Address address, Bytes size) const {
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first - address < size) return true;
  return holder(mappings_, address, [](const Mapping& m) { return m.size; }) != mappings_.end();
}

std::size_t SimulatedMemory::mappings_in(Address address, Bytes size) const {
  std::size_t count = 0;
  auto mapping = mappings_.lower_bound(address);
  while (mapping != mappings_.end() && mapping->first - address < size) {
    ++count;
    ++mapping;
  }
  return count;
}

std::optional<Location> SimulatedMemory::locate(Address address) const {
  const auto segment = holder(segments_, address, [](const SegmentState& s) { return s.size; });
  if (segment != segments_.end()) {
    const Bytes offset = address - segment->first;
    return Location{0, offset, segment->second.physical + offset, segment->second.size - offset};
  }
  const auto mapping = holder(mappings_, address, [](const Mapping& m) { return m.size; });
  if (mapping == mappings_.end()) return std::nullopt;
  const Bytes offset = address - mapping->first;
  const Address physical = physicals_.at(mapping->second.handle).physical;
  return Location{mapping->second.handle, offset, physical + offset, mapping->second.size - offset};
}

std::optional<SimulatedMemory::Segment> SimulatedMemory::segment_of(Address address) const {
  const auto found = holder(segments_, address, [](const SegmentState& s) { return s.size; });
  if (found == segments_.end()) return std::nullopt;
  return Segment{found->first, found->second.size};
}

std::optional<SimulatedMemory::Segment> SimulatedMemory::reservation_of(Address address) const {
  const auto found = holder(reservations_, address, [](Bytes size) { return size; });
  if (found == reservations_.end()) return std::nullopt;
  return Segment{found->first, found->second};
}

Bytes SimulatedMemory::physical_size(Physical memory) const {
  const auto found = physicals_.find(memory.handle);
  return found == physicals_.end() ? 0 : found->second.size;
}

}  // namespace fragshim
