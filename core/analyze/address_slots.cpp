#include "core/analyze/address_slots.hpp"

#include <bit>
#include <utility>

namespace fragshim {

AddressSlots::AddressSlots() : entries_(1024) {}

std::size_t AddressSlots::home(Address address) const {
  // The high bits of the product depend on every bit of the address.
  const int bits = std::countr_zero(entries_.size());
  return static_cast<std::size_t>(address * 0x9e3779b97f4a7c15 >> (64 - bits));
}

/// Where the address is, or the empty place where it would go.
std::size_t AddressSlots::find(Address address) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t i = home(address);
  while (entries_[i].address != 0 && entries_[i].address != address) i = (i + 1) & mask;
  return i;
}

std::optional<AddressSlots::Slot> AddressSlots::add(Address address) {
  std::size_t i = find(address);
  if (entries_[i].address != 0) return std::nullopt;
  if (2 * (live_ + 1) > entries_.size()) {
    grow();
    i = find(address);
  }
  Slot slot = bound_;
  if (spare_.empty()) {
    ++bound_;
  } else {
    slot = spare_.back();
    spare_.pop_back();
  }
  entries_[i] = {address, slot};
  ++live_;
  return slot;
}

std::optional<AddressSlots::Slot> AddressSlots::remove(Address address) {
  std::size_t hole = find(address);
  if (address == 0 || entries_[hole].address == 0) return std::nullopt;
  const Slot slot = entries_[hole].slot;
  // What follows moves up where it is nearer to its home, so that no search stops at the hole.
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t i = (hole + 1) & mask; entries_[i].address != 0; i = (i + 1) & mask) {
    const std::size_t from_home = (i - home(entries_[i].address)) & mask;
    if (from_home < ((i - hole) & mask)) continue;
    entries_[hole] = entries_[i];
    hole = i;
  }
  entries_[hole] = {};
  spare_.push_back(slot);
  --live_;
  return slot;
}

void AddressSlots::grow() {
  const auto old = std::exchange(entries_, std::vector<Entry>(entries_.size() * 2));
  for (const Entry& entry : old) {
    if (entry.address != 0) entries_[find(entry.address)] = entry;
  }
}

}  // namespace fragshim
