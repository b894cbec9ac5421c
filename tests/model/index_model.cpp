// OrderedIndex against std::map, whose keys are plain pairs of a size and an address.
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/alloc/ordered_index.hpp"
#include "tests/model/choices.hpp"
#include "tests/model/seeds.hpp"

using namespace fragshim;
using namespace fragshim::model;

namespace {

struct Item {
  int number = 0;
};

class IndexModel {
 public:
  IndexModel(std::uint64_t seed, std::uint64_t keys) : choices_(seed), keys_(keys) {}

  void fill(std::size_t count) {
    while (expected_.size() < count) insert();
  }

  void step() {
    switch (choices_.below(8)) {
      case 0:
      case 1:
        return insert();
      case 2:
        return erase();
      case 3:
        return erase_at_cursor();
      case 4:
      case 5:
        return rekey();
      default:
        return look();
    }
  }

  void drain() {
    while (!expected_.empty()) erase_at_cursor();
    check();
    require(index_.empty() && !index_.first() && !index_.last(), "not empty after the last erase");
  }

  void check() {
    require(index_.check(), "check");
    require(index_.size() == expected_.size(), "size");
    auto at = index_.first();
    for (const auto& [key, item] : expected_) {
      require(at && same(at, key, item), "the order going up");
      at = at.next();
    }
    require(!at, "an end going up");
    at = index_.last();
    for (auto it = expected_.rbegin(); it != expected_.rend(); ++it) {
      require(at && same(at, it->first, it->second), "the order going down");
      at = at.prev();
    }
    require(!at, "an end going down");
  }

 private:
  using Cursor = OrderedIndex<Item>::Cursor;
  using Pair = std::pair<Bytes, Address>;
  static constexpr Address apart = Address{1} << 20;  // as large as the largest size

  void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string("wrong: ") + what);
  }
  static IndexKey packed(const Pair& key) { return {key.first, key.second}; }
  static bool same(Cursor at, const Pair& key, const Item* item) {
    return at.key() == packed(key) && at.key().size() == key.first && at.get() == item;
  }
  /// Few sizes, many addresses, as free blocks have them.
  Pair any_key() {
    const Address address = choices_.below(keys_) * apart;
    if (choices_.one_in(50)) return {choices_.one_in(2) ? 0 : apart, address};
    return {choices_.below(choices_.one_in(2) ? 4 : keys_), address};
  }
  std::map<Pair, Item*>::iterator any_entry() {
    auto found = expected_.lower_bound(any_key());
    return found == expected_.end() ? expected_.begin() : found;
  }
  Cursor cursor_on(const Pair& key) {
    const Cursor at = index_.lower_bound(packed(key));
    require(at && at.key() == packed(key), "lower_bound of a key that is there");
    return at;
  }
  Item* new_item() { return &items_.emplace_back(); }

  void insert() {
    const Pair key = any_key();
    if (expected_.count(key) != 0) return;
    Item* item = new_item();
    require(index_.insert(nodes_, packed(key), item), "insert");
    expected_[key] = item;
  }

  void erase() {
    const Pair key = any_key();
    const auto found = expected_.find(key);
    Item* item = found == expected_.end() ? nullptr : found->second;
    require(index_.erase(nodes_, packed(key)) == item, "erase by key");
    if (item != nullptr) expected_.erase(found);
    if (expected_.empty()) return;
    const auto entry = any_entry();
    require(index_.erase(nodes_, packed(entry->first)) == entry->second,
            "erase of a key that is there");
    expected_.erase(entry);
  }

  void erase_at_cursor() {
    if (expected_.empty()) return;
    const auto entry = any_entry();
    index_.erase(nodes_, cursor_on(entry->first));
    expected_.erase(entry);
  }

  void rekey() {
    if (expected_.empty()) return;
    const auto entry = any_entry();
    Pair key = any_key();
    if (choices_.one_in(2)) {
      key = {entry->first.first, entry->first.second + choices_.below(4) * apart};
    }
    if (key == entry->first || expected_.count(key) != 0) return;
    Item* item = new_item();
    require(nodes_.prepare(IndexTree::max_height), "prepare");
    index_.rekey(nodes_, cursor_on(entry->first), packed(key), item);
    expected_.erase(entry);
    expected_[key] = item;
  }

  void look() {
    const Pair key = any_key();
    const auto above = expected_.lower_bound(key);
    const Cursor at = index_.lower_bound(packed(key));
    require(is_at(at, above), "lower_bound");
    const auto behind = expected_.upper_bound(key);
    require(is_at(index_.after(packed(key)), behind), "after");
    require(is_before(index_.before(packed(key)), above), "before");
    require(is_before(index_.at_or_before(packed(key)), behind), "at_or_before");
  }
  bool is_at(Cursor at, std::map<Pair, Item*>::iterator entry) {
    if (entry == expected_.end()) return !at;
    return at && same(at, entry->first, entry->second);
  }
  bool is_before(Cursor at, std::map<Pair, Item*>::iterator entry) {
    if (entry == expected_.begin()) return !at;
    --entry;
    return at && same(at, entry->first, entry->second);
  }

  SeededChoices choices_;
  const std::uint64_t keys_;
  IndexNodes nodes_;
  OrderedIndex<Item> index_;
  std::map<Pair, Item*> expected_;
  std::deque<Item> items_;
};

}  // namespace

TEST_CASE("the ordered index is an ordered map, small", "[index]") {
  for_each_seed(60, [](std::uint64_t seed, bool) {
    IndexModel model(seed, 1 + seed % 60);
    for (int i = 0; i < 1500; ++i) {
      model.step();
      if (i % 16 == 0) model.check();
    }
    model.drain();
  });
}

TEST_CASE("the ordered index is an ordered map, large", "[index]") {
  for_each_seed(2, [](std::uint64_t seed, bool) {
    IndexModel model(seed, 1'000'000);
    model.fill(seed == 1 ? 100'000 : 20'000);
    model.check();
    for (int i = 0; i < 100'000; ++i) model.step();
    model.check();
    model.drain();
  });
}
