#include "core/analyze/door_filter.hpp"

#include <algorithm>

namespace fragshim {

bool DoorFilter::is_of_left_out_block(const Event& event) {
  bool out = false;
  if (event.action == Action::allocate) {
    remove(event.address);  // alive: its free was not recorded
    out = event.door == EventDoor::synchronous;
    if (out) add(event);
  } else if (event.action == Action::free) {
    out = remove(event.address);
  }
  if (out) ++events_;
  return out;
}

void DoorFilter::add(const Event& event) {
  live_[event.address] = event.size;
  held_ += event.size;
  peak_ = std::max(peak_, held_);
}

bool DoorFilter::remove(Address address) {
  const auto found = live_.find(address);
  if (found == live_.end()) return false;
  held_ -= found->second;
  live_.erase(found);
  return true;
}

}  // namespace fragshim
