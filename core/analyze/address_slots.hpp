// Which number a live address of a trace has.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/types.hpp"

namespace fragshim {

/// Gives every live address a small number of its own and takes it back when the address dies, so
/// that numbers stay below the most that ever lived at once. Open addressing, linear probing.
class AddressSlots {
 public:
  using Slot = std::uint32_t;

  AddressSlots();

  /// The slot of a new address (not 0); nothing if it is alive already.
  std::optional<Slot> add(Address address);
  /// Takes a live address out; nothing if it is not alive.
  std::optional<Slot> remove(Address address);

  std::size_t live() const { return live_; }
  /// All slots given so far are below.
  std::size_t bound() const { return bound_; }

 private:
  struct Entry {
    Address address = 0;  // 0: empty
    Slot slot = 0;
  };

  std::size_t home(Address address) const;
  std::size_t find(Address address) const;
  void grow();

  std::vector<Entry> entries_;  // a power of two, at most half full
  std::vector<Slot> spare_;
  std::size_t live_ = 0;
  Slot bound_ = 0;
};

}  // namespace fragshim
