// An ordered map from keys to pointers: a B+ tree with wide leaves, so that a search among a
// million free blocks touches a handful of cache lines. Best fit is `lower_bound`: free blocks are
// keyed by (size, address), things in address order by (0, address).
//
// Nodes are dropped when they are empty, never merged before that: allocators put back what they
// took out, so half-empty nodes fill again.
#pragma once

#include "core/alloc/index_key.hpp"
#include "core/alloc/pool.hpp"
#include "core/types.hpp"

namespace fragshim {

/// Behind a node's last entry are empty ones, whose keys are behind every other, so that a search
/// has the same few steps whatever the count: 31 is one less than a power of two.
struct IndexNode {
  struct Entry {
    IndexKey key;           // inner nodes: a lower bound of what is under it, but for the first
    void* value = nullptr;  // leaves: the mapped pointer; inner nodes: IndexNode*
  };
  static constexpr unsigned capacity = 31;

  std::uint32_t count = 0;
  bool leaf = true;
  IndexNode* prev = nullptr;  // leaves only: the neighbours in key order
  IndexNode* next = nullptr;
  Entry entries[capacity + 1];
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
    IndexKey key() const { return node->entries[at].key; }
    void* value() const { return node->entries[at].value; }
    Cursor next() const;
    Cursor prev() const;
  };

  /// More levels than 2^64 entries would need.
  static constexpr std::size_t max_height = 16;

  /// Adds a key that is not yet there. False: no host memory, and nothing has changed.
  bool insert(IndexNodes& nodes, IndexKey key, void* value) noexcept;
  /// Removes a key; null if it was not there, else what it mapped to.
  void* erase(IndexNodes& nodes, IndexKey key) noexcept;
  /// Removes what a cursor stands on.
  void erase(IndexNodes& nodes, const Cursor& at) noexcept;
  /// Gives what a cursor stands on another key (not yet there) and value: an erase and an insert
  /// in one, cheap where the key moves but a little. Host memory for an insert was prepared.
  void rekey(IndexNodes& nodes, const Cursor& at, IndexKey key, void* value) noexcept;
  /// The first key >= `key`.
  Cursor lower_bound(IndexKey key) const noexcept;
  /// The last key < `key`.
  Cursor before(IndexKey key) const noexcept;
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
    IndexKey key() const { return at_.key(); }

   private:
    friend class OrderedIndex;
    IndexTree::Cursor at_;
  };

  bool insert(IndexNodes& nodes, IndexKey key, T* value) noexcept {
    return tree_.insert(nodes, key, value);
  }
  T* erase(IndexNodes& nodes, IndexKey key) noexcept {
    return static_cast<T*>(tree_.erase(nodes, key));
  }
  void erase(IndexNodes& nodes, const Cursor& at) noexcept { tree_.erase(nodes, at.at_); }
  void rekey(IndexNodes& nodes, const Cursor& at, IndexKey key, T* value) noexcept {
    tree_.rekey(nodes, at.at_, key, value);
  }
  Cursor lower_bound(IndexKey key) const noexcept { return Cursor(tree_.lower_bound(key)); }
  Cursor first() const noexcept { return Cursor(tree_.first()); }
  Cursor last() const noexcept { return Cursor(tree_.last()); }
  /// The first key > `key`.
  Cursor after(IndexKey key) const noexcept {
    const IndexTree::Cursor at = tree_.lower_bound(key);
    return Cursor(at && at.key() == key ? at.next() : at);
  }
  /// The last key < `key`.
  Cursor before(IndexKey key) const noexcept { return Cursor(tree_.before(key)); }
  /// The last key <= `key`.
  Cursor at_or_before(IndexKey key) const noexcept {
    const IndexTree::Cursor at = tree_.lower_bound(key);
    return at && at.key() == key ? Cursor(at) : before(key);
  }
  std::size_t size() const noexcept { return tree_.size(); }
  bool empty() const noexcept { return tree_.size() == 0; }
  bool check() const noexcept { return tree_.check(); }

 private:
  IndexTree tree_;
};

}  // namespace fragshim
