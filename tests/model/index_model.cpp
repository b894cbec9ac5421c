// OrderedIndex against std::map.
#include <deque>
#include <map>
#include <stdexcept>
#include <string>

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

  void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string("wrong: ") + what);
  }
  static bool same(Cursor at, const IndexKey& key, const Item* item) {
    return at.key() == key && at.get() == item;
  }
  /// Few sizes, many addresses, as free blocks have them.
  IndexKey any_key() {
    const std::uint64_t address = choices_.below(keys_);
    if (choices_.one_in(50)) return {choices_.one_in(2) ? 0 : ~std::uint64_t{0}, address};
    return {choices_.below(choices_.one_in(2) ? 4 : keys_), address * 512};
  }
  std::map<IndexKey, Item*>::iterator any_entry() {
    auto found = expected_.lower_bound(any_key());
    return found == expected_.end() ? expected_.begin() : found;
  }
  Cursor cursor_on(const IndexKey& key) {
    const Cursor at = index_.lower_bound(key);
    require(at && at.key() == key, "lower_bound of a key that is there");
    return at;
  }
  Item* new_item() { return &items_.emplace_back(); }

  void insert() {
    const IndexKey key = any_key();
    if (expected_.count(key) != 0) return;
    Item* item = new_item();
    require(index_.insert(nodes_, key, item), "insert");
    expected_[key] = item;
  }

  void erase() {
    const IndexKey key = any_key();
    const auto found = expected_.find(key);
    Item* item = found == expected_.end() ? nullptr : found->second;
    require(index_.erase(nodes_, key) == item, "erase by key");
    if (item != nullptr) expected_.erase(found);
    if (expected_.empty()) return;
    const auto entry = any_entry();
    require(index_.erase(nodes_, entry->first) == entry->second, "erase of a key that is there");
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
    IndexKey key = any_key();
    if (choices_.one_in(2)) key = {entry->first.major, entry->first.minor + choices_.below(2048)};
    if (key == entry->first || expected_.count(key) != 0) return;
    Item* item = new_item();
    require(nodes_.prepare(IndexTree::max_height), "prepare");
    index_.rekey(nodes_, cursor_on(entry->first), key, item);
    expected_.erase(entry);
    expected_[key] = item;
  }

  void look() {
    const IndexKey key = any_key();
    const auto above = expected_.lower_bound(key);
    const Cursor at = index_.lower_bound(key);
    require(static_cast<bool>(at) == (above != expected_.end()), "lower_bound past the end");
    require(!at || same(at, above->first, above->second), "lower_bound");
    const auto behind = expected_.upper_bound(key);
    const Cursor below = index_.at_or_before(key);
    require(static_cast<bool>(below) == (behind != expected_.begin()), "at_or_before nothing");
    if (below) {
      const auto last = std::prev(behind);
      require(same(below, last->first, last->second), "at_or_before");
    }
  }

  SeededChoices choices_;
  const std::uint64_t keys_;
  IndexNodes nodes_;
  OrderedIndex<Item> index_;
  std::map<IndexKey, Item*> expected_;
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
