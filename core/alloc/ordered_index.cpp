#include "core/alloc/ordered_index.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace fragshim {
namespace {

/// For how many of the 31 keys in order, of a node and behind it, `before` holds; it does for the
/// first ones. Finds the quarter they end in, then the place in it: two rounds of comparisons that
/// do not wait for each other. A search by halves waits five times, or takes a branch each time
/// that no predictor learns.
template <class Before>
unsigned partition(const IndexNode::Entry* entries, Before before) {
  static_assert(IndexNode::capacity == 31);
  unsigned quarters = 0;
  for (unsigned i = 7; i < 31; i += 8) quarters += static_cast<unsigned>(before(entries[i].key));
  entries += std::size_t{8} * quarters;
  unsigned count = 8 * quarters;
  for (unsigned i = 0; i < 7; ++i) count += static_cast<unsigned>(before(entries[i].key));
  return count;
}

unsigned count_below(const IndexNode& node, IndexKey key) {
  return partition(node.entries, [key](IndexKey other) { return other < key; });
}

/// Which child of an inner node `key` belongs under: the last whose bound is not above it. The
/// first has no bound.
unsigned child_for(const IndexNode& node, IndexKey key) {
  return partition(node.entries + 1, [key](IndexKey other) { return other <= key; });
}

void move_entries(IndexNode* node, unsigned from, unsigned to, std::size_t count) {
  std::memmove(&node->entries[to], &node->entries[from], count * sizeof(IndexNode::Entry));
}

void insert_at(IndexNode* node, unsigned at, IndexKey key, void* value) {
  move_entries(node, at, at + 1, node->count - at);
  node->entries[at] = {key, value};
  ++node->count;
}

void erase_at(IndexNode* node, unsigned at) {
  move_entries(node, at + 1, at, node->count - at);  // with the empty one behind the last
  --node->count;
}

/// Moves the upper half of `node` to the empty `upper` behind it.
void move_upper_half(IndexNode* node, IndexNode* upper) {
  const unsigned keep = node->count / 2;
  upper->leaf = node->leaf;
  upper->count = node->count - keep;
  std::memcpy(upper->entries, &node->entries[keep], upper->count * sizeof(IndexNode::Entry));
  node->count = keep;
  std::fill(&node->entries[keep], std::end(node->entries), IndexNode::Entry{});
  if (!node->leaf) return;
  upper->prev = node;
  upper->next = node->next;
  if (node->next != nullptr) node->next->prev = upper;
  node->next = upper;
}

IndexNode* child(const IndexNode* node, unsigned at) {
  return static_cast<IndexNode*>(node->entries[at].value);
}

/// Cuts the full child `at` of `parent` (which has room) in two.
void split_child(IndexNodes& nodes, IndexNode* parent, unsigned at) noexcept {
  IndexNode* upper = nodes.take();
  move_upper_half(child(parent, at), upper);
  insert_at(parent, at + 1, upper->entries[0].key, upper);
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
    if (!(node->entries[i].key == IndexKey{})) return false;
  }
  for (unsigned i = 0; i < node->count; ++i) {
    const bool bounds = height == 0 || i > 0;  // an inner node's first key bounds nothing
    const bool ordered = i > (height == 0 ? 0u : 1u);
    if (ordered && !(node->entries[i - 1].key < node->entries[i].key)) return false;
    if (bounds && low != nullptr && node->entries[i].key < *low) return false;
    if (bounds && high != nullptr && !(node->entries[i].key < *high)) return false;
    if (height == 0) continue;
    const IndexKey* lower = i > 0 ? &node->entries[i].key : low;
    const IndexKey* upper = i + 1 < node->count ? &node->entries[i + 1].key : high;
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

IndexTree::Cursor IndexTree::lower_bound(IndexKey key) const noexcept {
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

IndexTree::Cursor IndexTree::before(IndexKey key) const noexcept {
  const Cursor at = lower_bound(key);
  return at ? at.prev() : last();
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

bool IndexTree::insert(IndexNodes& nodes, IndexKey key, void* value) noexcept {
  if (!nodes.prepare(height_ + 2)) return false;
  if (root_ == nullptr) root_ = nodes.take();
  if (root_->count == IndexNode::capacity) {
    IndexNode* root = nodes.take();
    root->leaf = false;
    insert_at(root, 0, root_->entries[0].key, root_);
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

void IndexTree::rekey(IndexNodes& nodes, const Cursor& at, IndexKey key, void* value) noexcept {
  IndexNode* leaf = at.node;
  const unsigned last = leaf->count - 1;
  // Within the leaf's own bounds the rest of the tree need not know.
  const bool above = leaf->entries[0].key < key || leaf->prev == nullptr;
  const bool below = !(leaf->entries[last].key < key) || leaf->next == nullptr;
  if (!above || !below) {
    erase(nodes, at);
    insert(nodes, key, value);
    return;
  }
  // The rest of a large block stays the largest, mostly: then no place is to be found.
  const bool stays = (at.at == 0 || leaf->entries[at.at - 1].key < key) &&
                     (at.at == last || key < leaf->entries[at.at + 1].key);
  unsigned place = at.at;
  if (!stays) {
    const unsigned to = count_below(*leaf, key);
    if (to > at.at) {
      place = to - 1;
      move_entries(leaf, at.at + 1, at.at, place - at.at);
    } else {
      place = to;
      move_entries(leaf, place, place + 1, at.at - place);
    }
  }
  leaf->entries[place] = {key, value};
}

void* IndexTree::erase(IndexNodes& nodes, IndexKey key) noexcept {
  if (root_ == nullptr) return nullptr;
  Step path[max_height];
  IndexNode* node = root_;
  for (unsigned depth = 0; depth < height_; ++depth) {
    const unsigned at = child_for(*node, key);
    path[depth] = {node, at};
    node = child(node, at);
  }
  const unsigned at = count_below(*node, key);
  if (at == node->count || !(node->entries[at].key == key)) return nullptr;
  void* value = node->entries[at].value;
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
