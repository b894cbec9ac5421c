#include "core/device/simulated_pages.hpp"

#include <algorithm>
#include <bit>

namespace fragshim {

std::size_t SharedPages::order_of(Bytes size) {
  return static_cast<std::size_t>(std::bit_width((std::max(size, smallest) - 1) / smallest));
}

std::optional<Address> SharedPages::take(Bytes size) {
  const std::size_t wanted = order_of(size);
  std::size_t order = wanted;
  while (order < orders && free_[order].empty()) ++order;
  if (order >= orders) return std::nullopt;
  const Address address = *free_[order].begin();
  free_[order].erase(free_[order].begin());
  while (order > wanted) {
    --order;
    free_[order].insert(address + (smallest << order));
  }
  return address;
}

bool SharedPages::give(Address address, Bytes size) {
  std::size_t order = order_of(size);
  for (; order + 1 < orders; ++order) {
    if (free_[order].erase(address ^ (smallest << order)) == 0) {
      free_[order].insert(address);
      return false;
    }
    address &= ~(smallest << order);
  }
  return true;
}

}  // namespace fragshim
