#include <map>
#include <random>
#include <vector>

#include "core/device/simulated_pages.hpp"
#include "core/device/simulated_space.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

/// The same by looking at every byte: a byte is free or not.
class NaiveSpace {
 public:
  NaiveSpace(Address start, Bytes size) : start_(start), free_(size, true) {}
  std::optional<Address> take(Bytes size, Bytes alignment) {
    for (Address at = round_up(start_, alignment); at + size <= start_ + free_.size();
         at += alignment) {
      if (!is_free(at, size)) continue;
      set(at, size, false);
      return at;
    }
    return std::nullopt;
  }
  bool is_free(Address at, Bytes size) const {
    for (Bytes i = 0; i < size; ++i) {
      if (!free_[at - start_ + i]) return false;
    }
    return true;
  }
  void set(Address at, Bytes size, bool value) {
    for (Bytes i = 0; i < size; ++i) free_[at - start_ + i] = value;
  }

 private:
  Address start_;
  std::vector<bool> free_;
};

}  // namespace

TEST_CASE("an address space takes the lowest range that fits, as a naive one does") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    AddressSpace space(100, 900);
    NaiveSpace naive(100, 900);
    std::vector<std::pair<Address, Bytes>> taken;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 2 == 0 || taken.empty()) {
        const Bytes size = 1 + random() % (1u << (random() % 8));
        const Bytes alignment = Bytes{1} << (random() % 6);
        const auto got = space.take(size, alignment);
        REQUIRE(got == naive.take(size, alignment));
        if (got) taken.emplace_back(*got, size);
      } else {
        const std::size_t which = random() % taken.size();
        const auto [at, size] = taken[which];
        taken[which] = taken.back();
        taken.pop_back();
        space.give(at, size);
        naive.set(at, size, true);
      }
    }
    Address end = 0;
    for (const auto& [at, size] : space.ranges()) {
      REQUIRE(naive.is_free(at, size));
      REQUIRE(at > end);  // touching ranges are one
      end = at + size;
    }
  }
}

TEST_CASE("a range is taken at an address only if it is free as a whole") {
  AddressSpace space(0, 100);
  CHECK(space.take_at(10, 20));
  CHECK_FALSE(space.take_at(29, 1));
  CHECK_FALSE(space.take_at(5, 6));
  CHECK(space.take_at(30, 70));
  CHECK_FALSE(space.take_at(0, 11));
  CHECK(space.take_at(0, 10));
  CHECK(space.ranges().empty());
}

TEST_CASE("the tightest range is the shortest that is long enough") {
  AddressSpace space;
  space.give(0, 30);
  space.give(100, 10);
  space.give(200, 20);
  space.give(300, 20);
  CHECK(space.take_tightest(15) == Address{200});
  CHECK(space.take_tightest(15) == Address{300});
  CHECK(space.take_tightest(15) == Address{0});
  CHECK_FALSE(space.take_tightest(16));
  CHECK_FALSE(space.take_tightest(0));
}

TEST_CASE("parts of shared pages never overlap, and pages come back when all free") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    SharedPages pages;
    std::map<Address, Bytes> live;
    std::set<Address> whole;
    Address next_page = SharedPages::page_size;
    for (int step = 0; step < 5000; ++step) {
      if (random() % 2 == 0 || live.empty()) {
        const Bytes size = 1 + random() % (Bytes{1} << (random() % 21));
        auto address = pages.take(size);
        if (!address) {
          pages.add(next_page);
          whole.insert(next_page);
          next_page += 2 * SharedPages::page_size;
          address = pages.take(size);
        }
        REQUIRE(address);
        REQUIRE(whole.count(round_down(*address, SharedPages::page_size)) == 1);
        const auto after = live.upper_bound(*address);
        REQUIRE((after == live.end() || *address + size <= after->first));
        REQUIRE((after == live.begin() ||
                 std::prev(after)->first + std::prev(after)->second <= *address));
        live.emplace(*address, size);
      } else {
        auto victim = live.lower_bound(random() % next_page);
        if (victim == live.end()) victim = live.begin();
        const auto [address, size] = *victim;
        live.erase(victim);
        const Address page = round_down(address, SharedPages::page_size);
        const auto rest = live.lower_bound(page);
        const bool empty = rest == live.end() || rest->first >= page + SharedPages::page_size;
        REQUIRE(pages.give(address, size) == empty);
        if (empty) whole.erase(page);
      }
    }
  }
}
