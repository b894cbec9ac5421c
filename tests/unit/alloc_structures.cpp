// The structures under the heaps: the ordered index, the table of addresses, the pool.
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/alloc/address_table.hpp"
#include "core/alloc/ordered_index.hpp"
#include "core/alloc/pool.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

struct Index {
  IndexNodes nodes;
  OrderedIndex<int> index;
  std::vector<int> values = std::vector<int>(5000);

  explicit Index(unsigned count) {
    for (unsigned i = 0; i < count; ++i) REQUIRE(index.insert(nodes, key(i), &values[i]));
  }
  static constexpr Address apart = 1024;  // more than any size
  static IndexKey key(std::uint64_t i) { return {i / 10, i % 10 * apart}; }
};

}  // namespace

TEST_CASE("OrderedIndex: an empty one") {
  Index empty(0);
  CHECK(empty.index.check());
  CHECK_FALSE(empty.index.first());
  CHECK_FALSE(empty.index.last());
  CHECK_FALSE(empty.index.lower_bound({0, 0}));
  CHECK_FALSE(empty.index.at_or_before({~0ull, ~0ull}));
  CHECK(empty.index.erase(empty.nodes, {0, 0}) == nullptr);
}

TEST_CASE("OrderedIndex: both parts of a key count, up to their ends") {
  Index it(0);
  constexpr Bytes top = (Bytes{1} << 58) - 1;
  const IndexKey keys[] = {{0, 0}, {0, top}, {1, 0}, {1, top}, {top, 0}};
  for (int i = 4; i >= 0; --i) REQUIRE(it.index.insert(it.nodes, keys[i], &it.values[i]));
  auto at = it.index.first();
  for (int i = 0; i < 5; ++i, at = at.next()) CHECK(at.get() == &it.values[i]);
  CHECK_FALSE(at);
  CHECK(it.index.lower_bound({0, 1}).get() == &it.values[1]);
  CHECK(it.index.lower_bound({2, 0}).get() == &it.values[4]);
  CHECK(it.index.at_or_before({1, top - 1}).get() == &it.values[2]);
  CHECK(it.index.at_or_before({1, top}).get() == &it.values[3]);
  CHECK(it.index.before({1, top}).get() == &it.values[2]);
  CHECK(it.index.after({1, top}).get() == &it.values[4]);
  CHECK(it.index.before({unlimited, unlimited}).get() == &it.values[4]);
  CHECK_FALSE(it.index.before({0, 0}));
  CHECK_FALSE(it.index.after({top, 0}));
}

TEST_CASE("IndexKey: sizes come first, and come back") {
  constexpr Address far = Address{1} << 48;
  for (Bytes size = 1; size < far; size = size * 3 / 2 + 1) {
    CHECK(IndexKey(size, far).size() == size);
    CHECK(IndexKey(size, far) < IndexKey(size + 1, 0));
    CHECK(IndexKey(size, far) < IndexKey(size, far + 2 * size));
    CHECK(IndexKey(size, far) < IndexKey());
  }
  CHECK(IndexKey(0, far).size() == 0);
  CHECK(IndexKey(0, far) < IndexKey(1, 0));
}

TEST_CASE("OrderedIndex: leaves that become empty are dropped, in any order") {
  const unsigned count = GENERATE(1u, 32u, 33u, 1025u, 5000u);
  const int order = GENERATE(0, 1, 2);
  Index it(count);
  CHECK(it.index.check());
  for (unsigned i = 0; i < count; ++i) {
    const unsigned victim = order == 0 ? i : order == 1 ? count - 1 - i : (i + count / 2) % count;
    REQUIRE(it.index.erase(it.nodes, Index::key(victim)) == &it.values[victim]);
    if (i % 64 == 0) REQUIRE(it.index.check());
  }
  CHECK(it.index.empty());
  CHECK(it.index.check());
  REQUIRE(it.index.insert(it.nodes, {7, 7}, &it.values[0]));
  CHECK(it.index.first().get() == &it.values[0]);
}

TEST_CASE("OrderedIndex: an entry gets another key, near and far") {
  Index it(1000);
  const unsigned from = GENERATE(0u, 1u, 500u, 998u, 999u);
  const IndexKey to = GENERATE(IndexKey{0, 10 * Index::apart}, IndexKey{50, 11 * Index::apart},
                               IndexKey{99, 100 * Index::apart}, IndexKey{42, 99 * Index::apart});
  it.index.rekey(it.nodes, it.index.lower_bound(Index::key(from)), to, &it.values[4000]);
  CHECK(it.index.check());
  CHECK(it.index.size() == 1000);
  CHECK(it.index.lower_bound(to).get() == &it.values[4000]);
  const auto old = it.index.lower_bound(Index::key(from));
  CHECK((!old || !(old.key() == Index::key(from))));
}

TEST_CASE("AddressTable: any key, among them 0 and the highest") {
  AddressTable<int> table;
  int values[3] = {};
  CHECK(table.find(0) == nullptr);
  CHECK(table.erase(0) == nullptr);
  REQUIRE(table.insert(0, &values[0]));
  REQUIRE(table.insert(~std::uint64_t{0}, &values[1]));
  REQUIRE(table.insert(512, &values[2]));
  CHECK(table.find(0) == &values[0]);
  CHECK(table.find(~std::uint64_t{0}) == &values[1]);
  CHECK(table.find(1024) == nullptr);
  CHECK(table.erase(0) == &values[0]);
  CHECK(table.find(0) == nullptr);
  CHECK(table.erase(0) == nullptr);
  CHECK(table.size() == 2);
}

TEST_CASE("AddressTable: keys that collide stay within reach while others go") {
  // Multiples of a high power of two meet in a few places of the table; nearby keys run into them.
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 600; ++i) keys.push_back(i << 55);
  for (std::uint64_t i = 0; i < 2000; ++i) keys.push_back(i * 512 + 7);
  AddressTable<std::uint64_t> table;
  std::set<std::uint64_t> there;
  for (std::uint64_t& key : keys) {
    if (there.insert(key).second) REQUIRE(table.insert(key, &key));
  }
  unsigned step = 0;
  while (!there.empty()) {
    const std::uint64_t key = ++step % 2 == 0 ? *there.begin() : *there.rbegin();
    REQUIRE(*table.erase(key) == key);
    there.erase(key);
    if (step % 50 != 0) continue;
    std::size_t seen = 0;
    for (const std::uint64_t left : there) {
      REQUIRE(table.find(left) != nullptr);
      REQUIRE(*table.find(left) == left);
    }
    table.for_each([&](std::uint64_t at, const std::uint64_t* value) { seen += at == *value; });
    REQUIRE(seen == there.size());
  }
  CHECK(table.size() == 0);
}

TEST_CASE("Pool: fresh objects, recycled, as many as were prepared") {
  struct Thing {
    std::uint64_t number = 42;
    std::uint64_t more[7] = {};
  };
  Pool<Thing> pool;
  REQUIRE(pool.prepare(10'000));
  std::set<Thing*> things;
  for (int i = 0; i < 10'000; ++i) {
    Thing* thing = pool.take();
    REQUIRE(thing != nullptr);
    REQUIRE(thing->number == 42);
    REQUIRE(reinterpret_cast<std::uintptr_t>(thing) % alignof(Thing) == 0);
    thing->number = 1;
    things.insert(thing);
  }
  CHECK(things.size() == 10'000);
  Thing* one = *things.begin();
  pool.give(one);
  CHECK(pool.take() == one);
  CHECK(one->number == 42);
}
