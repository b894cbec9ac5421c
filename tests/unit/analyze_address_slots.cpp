// Numbers for live addresses, against a plain map.
#include "core/analyze/address_slots.hpp"

#include <map>
#include <random>
#include <set>

#include "tests/catch.hpp"

using namespace fragshim;

TEST_CASE("slots stay below the most that lived at once, and are unique among the living") {
  std::mt19937_64 random(11);
  AddressSlots slots;
  std::map<Address, AddressSlots::Slot> model;
  std::set<AddressSlots::Slot> used;
  std::size_t most = 0;
  for (int i = 0; i < 300'000; ++i) {
    // Few addresses, most of them neighbours: long probe runs, many collisions.
    const Address address = 512 * (1 + random() % 5000);
    if (random() % 100 < (i / 50'000 % 2 == 0 ? 70u : 30u)) {
      const auto slot = slots.add(address);
      const bool added = model.count(address) == 0;
      REQUIRE(slot.has_value() == added);
      if (!added) continue;
      REQUIRE(used.insert(*slot).second);
      model[address] = *slot;
    } else {
      const auto slot = slots.remove(address);
      const auto found = model.find(address);
      REQUIRE(slot.has_value() == (found != model.end()));
      if (!slot) continue;
      REQUIRE(*slot == found->second);
      used.erase(*slot);
      model.erase(found);
    }
    most = std::max(most, model.size());
    REQUIRE(slots.live() == model.size());
  }
  CHECK(slots.bound() == most);
  CHECK_FALSE(slots.remove(0).has_value());
}
