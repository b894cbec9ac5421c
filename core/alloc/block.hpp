// A block: one stretch of device memory, live or free, linked to its neighbours by address.
#pragma once

#include "core/alloc/heap.hpp"
#include "core/alloc/pool.hpp"
#include "core/types.hpp"

namespace fragshim {

struct StreamSlot;

struct alignas(64) Block {
  using State = BlockState;

  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;    // live: what the program asked for
  Block* prev = nullptr;  // neighbours in the same segment or range, by address
  Block* next = nullptr;
  Block* link = nullptr;       // the next in whatever chain the block is in (a batch, a release)
  StreamSlot* slot = nullptr;  // the stream it belongs to
  std::uint32_t born = 0;      // free: the pool's search count when it became so
  State state = State::free;
  bool small = false;       // of the pool of small blocks
  bool expandable = false;  // in an expandable segment
  bool held = false;        // its segment is pinned: neither split nor reused

  bool is_free() const { return state == State::free; }
  bool is_whole() const { return prev == nullptr && next == nullptr; }
};

static_assert(sizeof(Block) == 64, "one cache line");

using BlockPool = Pool<Block>;

}  // namespace fragshim
