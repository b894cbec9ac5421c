// An ordered map from pairs of integers to pointers: a B+ tree with wide leaves, so that a search
// among a million free blocks touches a handful of cache lines. Best fit is `lower_bound`: free
// blocks are keyed by (size, address), things in address order by (0, address).
//
// Nodes are dropped when they are empty, never merged before that: allocators put back what they
// took out, so half-empty nodes fill again.
#pragma once

#include "core/alloc/pool.hpp"
#include "core/types.hpp"

namespace fragshim {

struct IndexKey {
  std::uint64_t major;
  std::uint64_t minor;
  friend constexpr bool operator==(const IndexKey&, const IndexKey&) = default;
  friend constexpr bool operator<(const IndexKey& a, const IndexKey& b) {
    return a.whole() < b.whole();  // one subtraction with borrow instead of three comparisons
  }

 private:
  __extension__ using Whole = unsigned __int128;
  constexpr Whole whole() const { return static_cast<Whole>(major) << 64 | minor; }
};

/// Keys behind a node's last one are `nothing`, so that a search has the same few steps whatever
/// the count: 31 is one less than a power of two.
struct IndexNode {
  static constexpr unsigned capacity = 31;
  static constexpr IndexKey nothing{~std::uint64_t{0}, ~std::uint64_t{0}};
  IndexNode() { clear_from(0); }
  void clear_from(unsigned at) {
    for (; at <= capacity; ++at) keys[at] = nothing;
  }

  std::uint32_t count = 0;
  bool leaf = true;
  IndexNode* prev = nullptr;  // leaves only: the neighbours in key order
  IndexNode* next = nullptr;
  IndexKey keys[capacity + 1];  // inner nodes, but for the first: a lower bound of what is under it
  void* values[capacity];       // leaves: the mapped pointers; inner nodes: IndexNode*
};

using IndexNodes = Pool<IndexNode>;

/// The tree itself, for any kind of pointer. Not thread-safe. Nodes come from a pool the caller
/// shares among many trees; the pool outlives them.
class IndexTree {
 public:
  /// A place in the tree; invalid past either end, and after any change of the tree.
  struct Cursor {
    IndexNode* node = nullptr;
    unsigned at = 0;
    explicit operator bool() const { return node != nullptr; }
    const IndexKey& key() const { return node->keys[at]; }
    void* value() const { return node->values[at]; }
    Cursor next() const;
    Cursor prev() const;
  };

  /// More levels than 2^64 entries would need.
  static constexpr std::size_t max_height = 16;

  /// Adds a key that is not yet there. False: no host memory, and nothing has changed.
  bool insert(IndexNodes& nodes, const IndexKey& key, void* value) noexcept;
  /// Removes a key; null if it was not there, else what it mapped to.
  void* erase(IndexNodes& nodes, const IndexKey& key) noexcept;
  /// Removes what a cursor stands on.
  void erase(IndexNodes& nodes, const Cursor& at) noexcept;
  /// Gives what a cursor stands on another key (not yet there) and value: an erase and an insert
  /// in one, cheap where the key moves but a little. Host memory for an insert was prepared.
  void rekey(IndexNodes& nodes, const Cursor& at, const IndexKey& key, void* value) noexcept;
  /// The first key >= `key`.
  Cursor lower_bound(const IndexKey& key) const noexcept;
  /// Brings the place of a key nearer, for a caller who will soon insert it.
  void prefetch(const IndexKey& key) const noexcept;
  Cursor first() const noexcept;
  Cursor last() const noexcept;
  std::size_t size() const noexcept { return size_; }
  /// Order, counts, links and separators are right.
  bool check() const noexcept;

 private:
  struct Step {
    IndexNode* node;
    unsigned at;
  };
  void drop_empty(IndexNodes& nodes, IndexNode* leaf, const Step* path) noexcept;

  IndexNode* root_ = nullptr;
  unsigned height_ = 0;  // inner levels above the leaves
  std::size_t size_ = 0;
};

/// IndexTree for pointers to T.
template <class T>
class OrderedIndex {
 public:
  class Cursor {
   public:
    Cursor() = default;
    explicit Cursor(IndexTree::Cursor at) : at_(at) {}
    explicit operator bool() const { return static_cast<bool>(at_); }
    T* get() const { return static_cast<T*>(at_.value()); }
    T* operator->() const { return get(); }
    Cursor next() const { return Cursor(at_.next()); }
    Cursor prev() const { return Cursor(at_.prev()); }
    const IndexKey& key() const { return at_.key(); }

   private:
    friend class OrderedIndex;
    IndexTree::Cursor at_;
  };

  bool insert(IndexNodes& nodes, const IndexKey& key, T* value) noexcept {
    return tree_.insert(nodes, key, value);
  }
  T* erase(IndexNodes& nodes, const IndexKey& key) noexcept {
    return static_cast<T*>(tree_.erase(nodes, key));
  }
  void erase(IndexNodes& nodes, const Cursor& at) noexcept { tree_.erase(nodes, at.at_); }
  void rekey(IndexNodes& nodes, const Cursor& at, const IndexKey& key, T* value) noexcept {
    tree_.rekey(nodes, at.at_, key, value);
  }
  Cursor lower_bound(const IndexKey& key) const noexcept { return Cursor(tree_.lower_bound(key)); }
  void prefetch(const IndexKey& key) const noexcept { tree_.prefetch(key); }
  Cursor first() const noexcept { return Cursor(tree_.first()); }
  Cursor last() const noexcept { return Cursor(tree_.last()); }
  /// The last key <= `key`.
  Cursor at_or_before(const IndexKey& key) const noexcept {
    const IndexTree::Cursor above = tree_.lower_bound(key);
    if (above && above.key() == key) return Cursor(above);
    return Cursor(above ? above.prev() : tree_.last());
  }
  std::size_t size() const noexcept { return tree_.size(); }
  bool empty() const noexcept { return tree_.size() == 0; }
  bool check() const noexcept { return tree_.check(); }

 private:
  IndexTree tree_;
};

}  // namespace fragshim
