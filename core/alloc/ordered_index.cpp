#include "core/alloc/ordered_index.hpp"

#include <algorithm>
#include <cstring>

namespace fragshim {
namespace {

/// For how many of seven keys in order `before` holds.
template <class Before>
unsigned count_first_seven(const IndexKey* keys, Before before) {
  unsigned count = 0;
  for (unsigned i = 0; i < 7; ++i) count += static_cast<unsigned>(before(keys[i]));
  return count;
}

/// For how many of the 31 keys in order, of a node and behind it, `before` holds; it does for the
/// first ones. Finds the quarter they end in, then the place in it: two rounds of comparisons that
/// do not wait for each other. A search by halves waits five times, or takes a branch each time
/// that no predictor learns.
template <class Before>
unsigned partition(const IndexKey* keys, Before before) {
  static_assert(IndexNode::capacity == 31);
  unsigned quarters = 0;
  for (unsigned i = 7; i < 31; i += 8) quarters += static_cast<unsigned>(before(keys[i]));
  const std::size_t from = std::size_t{8} * quarters;
  return static_cast<unsigned>(from) + count_first_seven(keys + from, before);
}

unsigned count_below(const IndexNode& node, const IndexKey& key) {
  return partition(node.keys, [key](const IndexKey& other) { return other < key; });
}

/// Which child of an inner node `key` belongs under: the last whose bound is not above it. The
/// first has no bound. Most trees are small: a root with a few leaves.
unsigned child_for(const IndexNode& node, const IndexKey& key) {
  const auto at_most_key = [key](const IndexKey& other) { return !(key < other); };
  const unsigned bounds = node.count <= 8 ? count_first_seven(node.keys + 1, at_most_key)
                                          : partition(node.keys + 1, at_most_key);
  return std::min(bounds, node.count - 1);  // the greatest key is not below `nothing`
}

void insert_at(IndexNode* node, unsigned at, const IndexKey& key, void* value) {
  const std::size_t after = node->count - at;
  std::memmove(&node->keys[at + 1], &node->keys[at], after * sizeof(IndexKey));
  std::memmove(&node->values[at + 1], &node->values[at], after * sizeof(void*));
  node->keys[at] = key;
  node->values[at] = value;
  ++node->count;
}

void erase_at(IndexNode* node, unsigned at) {
  const std::size_t after = node->count - at - 1;
  std::memmove(&node->keys[at], &node->keys[at + 1], after * sizeof(IndexKey));
  std::memmove(&node->values[at], &node->values[at + 1], after * sizeof(void*));
  node->keys[--node->count] = IndexNode::nothing;
}

/// Frees the place `to` by moving what lies between it and the entry at `from`, which goes.
void move_entry(IndexNode* node, unsigned from, unsigned to) {
  const bool up = to > from;
  const unsigned source = up ? from + 1 : to;
  const unsigned target = up ? from : to + 1;
  const std::size_t count = up ? to - from : from - to;
  std::memmove(&node->keys[target], &node->keys[source], count * sizeof(IndexKey));
  std::memmove(&node->values[target], &node->values[source], count * sizeof(void*));
}

/// Moves the upper half of `node` to the empty `upper` behind it.
void move_upper_half(IndexNode* node, IndexNode* upper) {
  const unsigned keep = node->count / 2;
  upper->leaf = node->leaf;
  upper->count = node->count - keep;
  std::memcpy(upper->keys, &node->keys[keep], upper->count * sizeof(IndexKey));
  std::memcpy(upper->values, &node->values[keep], upper->count * sizeof(void*));
  node->count = keep;
  node->clear_from(keep);
  if (!node->leaf) return;
  upper->prev = node;
  upper->next = node->next;
  if (node->next != nullptr) node->next->prev = upper;
  node->next = upper;
}

IndexNode* child(const IndexNode* node, unsigned at) {
  return static_cast<IndexNode*>(node->values[at]);
}

/// Cuts the full child `at` of `parent` (which has room) in two.
void split_child(IndexNodes& nodes, IndexNode* parent, unsigned at) noexcept {
  IndexNode* upper = nodes.take();
  move_upper_half(child(parent, at), upper);
  insert_at(parent, at + 1, upper->keys[0], upper);
}

constexpr unsigned height_of_far_nodes = 2;  // the nodes of a lower tree are in some cache

/// Fetches a node about to be searched, all at once: line by line the search would wait for each.
void prefetch_node(const IndexNode& node) {
  constexpr std::size_t line = 64;
  for (std::size_t at = 0; at < sizeof(IndexNode); at += line) {
    __builtin_prefetch(reinterpret_cast<const char*>(&node) + at);
  }
}

/// Every key under `node` lies in [low, high) and in order; counts the leaves' entries.
bool check_node(const IndexNode* node, unsigned height, const IndexKey* low, const IndexKey* high,
                std::size_t* entries) {
  if (node->count == 0 || node->leaf != (height == 0)) return false;
  for (unsigned i = node->count; i <= IndexNode::capacity; ++i) {
    if (!(node->keys[i] == IndexNode::nothing)) return false;
  }
  for (unsigned i = 0; i < node->count; ++i) {
    const bool bounds = height == 0 || i > 0;  // an inner node's first key bounds nothing
    const bool ordered = i > (height == 0 ? 0u : 1u);
    if (ordered && !(node->keys[i - 1] < node->keys[i])) return false;
    if (bounds && low != nullptr && node->keys[i] < *low) return false;
    if (bounds && high != nullptr && !(node->keys[i] < *high)) return false;
    if (height == 0) continue;
    const IndexKey* lower = i > 0 ? &node->keys[i] : low;
    const IndexKey* upper = i + 1 < node->count ? &node->keys[i + 1] : high;
    if (!check_node(child(node, i), height - 1, lower, upper, entries)) return false;
  }
  if (height == 0) *entries += node->count;
  return true;
}

}  // namespace

IndexTree::Cursor IndexTree::Cursor::next() const {
  if (at + 1 < node->count) return {node, at + 1};
  return {node->next, 0};
}

IndexTree::Cursor IndexTree::Cursor::prev() const {
  if (at > 0) return {node, at - 1};
  if (node->prev == nullptr) return {};
  return {node->prev, node->prev->count - 1};
}

IndexTree::Cursor IndexTree::lower_bound(const IndexKey& key) const noexcept {
  if (root_ == nullptr) return {};
  IndexNode* node = root_;
  for (unsigned depth = 0; depth < height_; ++depth) {
    node = child(node, child_for(*node, key));
    if (height_ >= height_of_far_nodes) prefetch_node(*node);
  }
  const unsigned at = count_below(*node, key);
  if (at < node->count) return {node, at};
  return {node->next, 0};
}

void IndexTree::prefetch(const IndexKey& key) const noexcept {
  if (height_ < height_of_far_nodes) return;
  const IndexNode* node = root_;
  for (unsigned depth = 0; depth < height_; ++depth) node = child(node, child_for(*node, key));
  prefetch_node(*node);
}

IndexTree::Cursor IndexTree::first() const noexcept {
  if (root_ == nullptr) return {};
  IndexNode* node = root_;
  for (unsigned depth = 0; depth < height_; ++depth) node = child(node, 0);
  return {node, 0};
}

IndexTree::Cursor IndexTree::last() const noexcept {
  if (root_ == nullptr) return {};
  IndexNode* node = root_;
  for (unsigned depth = 0; depth < height_; ++depth) node = child(node, node->count - 1);
  return {node, node->count - 1};
}

bool IndexTree::insert(IndexNodes& nodes, const IndexKey& key, void* value) noexcept {
  if (!nodes.prepare(height_ + 2)) return false;
  if (root_ == nullptr) root_ = nodes.take();
  if (root_->count == IndexNode::capacity) {
    IndexNode* root = nodes.take();
    root->leaf = false;
    insert_at(root, 0, root_->keys[0], root_);
    root_ = root;
    ++height_;
    split_child(nodes, root_, 0);
  }
  // Full nodes are split on the way down, so that a parent always has room.
  IndexNode* node = root_;
  while (!node->leaf) {
    unsigned at = child_for(*node, key);
    if (height_ >= height_of_far_nodes) prefetch_node(*child(node, at));
    if (child(node, at)->count == IndexNode::capacity) {
      split_child(nodes, node, at);
      at = child_for(*node, key);
    }
    node = child(node, at);
  }
  insert_at(node, count_below(*node, key), key, value);
  ++size_;
  return true;
}

void IndexTree::erase(IndexNodes& nodes, const Cursor& at) noexcept {
  if (at.node->count == 1) {
    erase(nodes, at.key());
    return;
  }
  erase_at(at.node, at.at);
  --size_;
}

void IndexTree::rekey(IndexNodes& nodes, const Cursor& at, const IndexKey& key,
                      void* value) noexcept {
  IndexNode* leaf = at.node;
  const unsigned last = leaf->count - 1;
  // Within the leaf's own bounds the rest of the tree need not know.
  const bool above = leaf->keys[0] < key || leaf->prev == nullptr;
  const bool below = !(leaf->keys[last] < key) || leaf->next == nullptr;
  if (!above || !below) {
    erase(nodes, at);
    insert(nodes, key, value);
    return;
  }
  // The rest of a large block stays the largest, mostly: then no place is to be found.
  const bool stays =
      (at.at == 0 || leaf->keys[at.at - 1] < key) && (at.at == last || key < leaf->keys[at.at + 1]);
  unsigned place = at.at;
  if (!stays) {
    const unsigned to = count_below(*leaf, key);
    place = to > at.at ? to - 1 : to;
    move_entry(leaf, at.at, place);
  }
  leaf->keys[place] = key;
  leaf->values[place] = value;
}

void* IndexTree::erase(IndexNodes& nodes, const IndexKey& key) noexcept {
  if (root_ == nullptr) return nullptr;
  Step path[max_height];
  IndexNode* node = root_;
  for (unsigned depth = 0; depth < height_; ++depth) {
    const unsigned at = child_for(*node, key);
    path[depth] = {node, at};
    node = child(node, at);
  }
  const unsigned at = count_below(*node, key);
  if (at == node->count || !(node->keys[at] == key)) return nullptr;
  void* value = node->values[at];
  erase_at(node, at);
  --size_;
  if (node->count == 0) drop_empty(nodes, node, path);
  return value;
}

/// Takes an empty leaf out of the tree, with the inner nodes that become empty through it.
void IndexTree::drop_empty(IndexNodes& nodes, IndexNode* leaf, const Step* path) noexcept {
  if (leaf->prev != nullptr) leaf->prev->next = leaf->next;
  if (leaf->next != nullptr) leaf->next->prev = leaf->prev;
  nodes.give(leaf);
  unsigned depth = height_;
  while (depth > 0) {
    const Step& above = path[--depth];
    erase_at(above.node, above.at);
    if (above.node->count > 0) break;
    nodes.give(above.node);
    if (depth == 0) root_ = nullptr;
  }
  if (height_ == 0) root_ = nullptr;
  if (root_ == nullptr) height_ = 0;
  while (height_ > 0 && root_->count == 1) {
    IndexNode* only = child(root_, 0);
    nodes.give(root_);
    root_ = only;
    --height_;
  }
}

bool IndexTree::check() const noexcept {
  if (root_ == nullptr) return size_ == 0 && height_ == 0;
  std::size_t entries = 0;
  if (!check_node(root_, height_, nullptr, nullptr, &entries) || entries != size_) return false;
  std::size_t linked = 0;
  for (Cursor at = first(); at; at = at.next()) ++linked;
  return linked == size_;
}

}  // namespace fragshim
