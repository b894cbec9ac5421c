// Stream-ordered memory: blocks in one large range of addresses to which physical chunks are
// mapped as they are needed, and from which whole free chunks go back.
//
// Free memory in pieces is not lost: once the heap holds as much as its peak calls for, chunks that
// lie free elsewhere are mapped to where memory is missing (gathered) before new ones are created.
//
// A block freed on its own stream is at once good for that stream. Freed on another one, it comes
// home when that stream has passed. Other streams' free blocks are taken over behind a fence.
//
// Blocks asked for on all_streams may be used on any (cudaMalloc's are): freed, they come home when
// all streams have passed, and where one is needed sooner the host waits.
#pragma once

#include <atomic>

#include "config/allocation_config.hpp"
#include "core/alloc/block_store.hpp"
#include "core/alloc/chunk_sizes.hpp"
#include "core/alloc/fence_queue.hpp"
#include "core/alloc/heap.hpp"
#include "core/alloc/heap_mutex.hpp"

namespace fragshim {

/// Physical memory in one piece, and where it is mapped. A shared chunk has several such records,
/// each of which serves a part of the memory at its own addresses.
struct Chunk {
  Address address = 0;
  Bytes size = 0;
  Physical memory;
  Block* block = nullptr;   // while it is on its way out: the first of the blocks it is made of
  Chunk* link = nullptr;    // the next in a chain
  Chunk* twin = nullptr;    // shared: the next of its records, in a ring
  Block* shadow = nullptr;  // shared: addresses here whose memory serves elsewhere; hollow
  bool stays = false;       // the device refused to map it a second time: it can only serve here
  bool leaves = false;      // hollow: its memory goes with these addresses
};

/// A free end of a chunk that is lent: mapped a second time, where memory is missing.
struct Loan {
  Chunk* chunk = nullptr;   // the lender; none: there is no loan
  Chunk* twin = nullptr;    // its record at the new place
  Block* block = nullptr;   // what is lent, claimed: the first of the blocks it is made of
  Bytes size = 0;           // of what is lent
  Block* shadow = nullptr;  // at the new place: the addresses of what is not lent

  Bytes unlent() const { return chunk == nullptr ? 0 : chunk->size - size; }
};

/// Chunks' old addresses, to be unmapped behind one fence.
struct HollowBatch {
  Chunk* first = nullptr;
  Fence fence;               // none: it could not be recorded yet
  std::uint64_t number = 0;  // in order of the moves
  bool over = false;         // the fence has passed
  HollowBatch* next = nullptr;
};

struct VirtualOptions {
  /// Addresses to reserve, in bytes: several times the card, since holes are reused but lazily.
  /// Where there are not so many, it is halved until there are.
  Bytes span = Bytes{1} << 40;
  Callers callers = Callers::many;
  ChunkSizes chunks;
};

class VirtualHeap final : public Heap {
 public:
  /// The device's granularity() must not be 0. Throws std::bad_alloc where the host has no memory.
  VirtualHeap(Device& device, const AllocationConfig& config, const VirtualOptions& options = {});

  Grant allocate(Bytes size, StreamId stream) noexcept override;
  Status free(Address address, StreamId stream) noexcept override;
  Bytes trim(Bytes keep) noexcept override;
  bool contains(Address address) const noexcept override;
  void forget_stream(StreamId stream) noexcept override;
  void reset_peaks(bool allocated, bool reserved) noexcept override;
  Counters counters() const noexcept override;
  Usage usage() const noexcept override;
  void walk(BlockVisitor& visitor) const override;
  bool check(std::string* why) const override;

 private:
  /// A part of the reserved range. Small blocks have one of their own, so that they never pin the
  /// memory that large ones need.
  struct Arena {
    Address base = 0;
    Bytes span = 0;
    Block* first = nullptr;
    OrderedIndex<Block> unmapped;  // by (0, address)
    OrderedIndex<Chunk> chunks;    // by (0, address)
  };
  struct Request {
    Bytes requested;
    Bytes size;
    bool small;
    StreamSlot* slot;
    Status failure;
    bool scarce;   // memory is short: nothing is created that can be gathered
    bool tight;    // ... and nothing is mapped beyond the request
    bool alone;    // no other stream's memory: the stream cannot be made to wait
    int refusals;  // mappings that the device has refused
  };
  /// Addresses that can be made into one block, and how much memory that takes.
  struct Site {
    Block* below = nullptr;  // a free block that ends where `hole` starts
    Block* hole = nullptr;
    Block* above = nullptr;  // a free block that starts where `hole` ends, if all of it is needed
    Bytes missing = 0;
  };
  /// Where a site's memory comes from: new chunks at its lower end, moved ones behind them.
  struct Supply {
    Chunk* created = nullptr;  // chained, filled in when they are made
    Bytes created_bytes = 0;
    Bytes step = 0;          // the size of each new chunk but the last
    Chunk* moved = nullptr;  // chained, claimed, and still where they were
    Bytes moved_bytes = 0;
    std::size_t moved_count = 0;
    Chunk* leaving = nullptr;         // claimed: it lies free, cannot be moved, and goes instead
    HollowBatch* hollows = nullptr;   // with a record for each moved one
    Loan tail;                        // the upper end of a chunk, in front of all this
    Loan head;                        // the lower end of one, behind it
    HollowBatch* reunited = nullptr;  // places of shared chunks, given up in the search for memory
    Chunk* refused = nullptr;         // one of `moved`, or a lender, that the device did not map

    Bytes lent() const { return tail.size + head.size; }
    Bytes bytes() const { return tail.size + created_bytes + moved_bytes + head.size; }
    /// What it takes of the addresses: all of a chunk is mapped, however little of it is lent.
    Bytes addresses() const { return bytes() + tail.unlent() + head.unlent(); }
  };
  /// What `gather` may take.
  struct Terms {
    Bytes goal;         // bytes wanted
    Bytes most;         // bytes that find room
    bool larger;        // a chunk may be larger than what is still wanted
    bool oversize;      // blocks that max_split_size keeps for large requests, too
    StreamSlot* taker;  // whose blocks may be taken, and the idle ones
    bool lenders;       // other streams' as well
  };

  // The hot path (virtual_heap.cpp).
  Block* take_recent(const Request& request) noexcept;
  void settle_recent() noexcept;
  Block* take_free(StreamSlot* slot, const Request& request) noexcept;
  Block* take_own(const Request& request) noexcept;
  bool splits(const Request& request, Bytes block) const noexcept;
  Block* fit(Block* block, const Request& request) noexcept;

  // When the stream's own blocks do not serve (virtual_streams.cpp).
  Block* obtain(Request& request, HeapLock& lock) noexcept;
  bool collect_returning(HeapLock& lock) noexcept;
  bool close_returning(StreamSlot* slot, HeapLock& lock) noexcept;
  void await_returning(HeapLock& lock) noexcept;
  Block* claim_returning(const Request& request, HeapLock& lock) noexcept;
  void come_home(Block* chain, StreamSlot* taker = nullptr) noexcept;
  void bury_dead_streams(HeapLock& lock) noexcept;
  bool outlived(StreamSlot* slot, HeapLock& lock) noexcept;
  void make_idle(StreamSlot* slot) noexcept;
  Block* take_over(const Request& request, bool wait, HeapLock& lock) noexcept;
  Block* best_elsewhere(const Request& request, std::uint64_t search) noexcept;
  bool order_behind(StreamId lender, StreamId taker, bool wait, HeapLock& lock) noexcept;

  // Memory from the device (virtual_growth.cpp).
  bool reserve_range(Request& request, HeapLock& lock) noexcept;
  Block* grow(Request& request, HeapLock& lock) noexcept;
  Site find_site(const Request& request) const noexcept;
  Site site_at(Block* hole, const Request& request) const noexcept;
  void claim(const Request& request, const Site& site) noexcept;
  void leave_surplus(const Request& request, const Site& site) noexcept;
  void cut_back(Block* hole, Bytes bytes) noexcept;
  Block* join(const Site& site) noexcept;
  static bool leave_where_it_is(Chunk* refused, Request* request, Status status) noexcept;
  void add_chunks(Arena& arena, Chunk* chunks) noexcept;
  void make_hole(Block* block) noexcept;
  void make_hollow(Block* block) noexcept;

  // Where it comes from: how much is created, moved and lent (virtual_supply.cpp).
  Bytes chunk_size(bool small) const noexcept;
  Bytes growth_unit(bool small) const noexcept;
  Bytes room_to_grow(const Request& request) const noexcept;
  Bytes wanted_bytes(const Request& request, const Site& site, Bytes room) const noexcept;
  Bytes step_for(Bytes bytes, Bytes most) const noexcept;
  bool plan(const Request& request, const Site& site, Supply* supply) noexcept;
  Bytes still_missing(Bytes bytes, const Supply& supply) const noexcept;
  bool take_records(Supply* supply) noexcept;
  void give_records(Chunk* chunks) noexcept;
  void abandon(const Site& site, const Supply& supply) noexcept;
  Status carry_out(Supply* supply, Address address) noexcept;
  Status create_chunks(const Supply& supply, Address address) noexcept;
  void drop_created(const Chunk* first, const Chunk* end) noexcept;

  // Memory moved to where it is missing (virtual_gather.cpp).
  void gather(const Request& request, Bytes goal, Bytes most, Supply* supply) noexcept;
  bool gather_everywhere(const Request& request, Terms terms, Supply* supply) noexcept;
  void gather_on(const Terms& terms, bool small, Supply* supply) noexcept;
  void gather_around(Block* block, const Terms& terms, Supply* supply) noexcept;
  bool lends(const Block* block, const Terms& terms) const noexcept;
  Block* next_smaller(const Terms& terms, bool small, const IndexKey& than) const noexcept;
  bool order_lenders(StreamSlot* taker, const Supply& supply, HeapLock& lock) noexcept;
  Status map_moved(Supply* supply, Address address) noexcept;
  void unmap_moved(const Supply& supply, const Chunk* end, Address address) noexcept;
  void settle_moved(const Supply& supply, Address address, const Request& request) noexcept;
  void leave_behind(HollowBatch* batch, StreamId stream, HeapLock& lock) noexcept;
  Bytes reclaim_hollows(HeapLock& lock) noexcept;
  bool left_behind(HollowBatch* batch, HeapLock& lock) noexcept;
  bool passed(HollowBatch* batch, HeapLock& lock) noexcept;
  bool unmap_hollows(HollowBatch* batch, Bytes* gone, HeapLock& lock) noexcept;

  // Ends of chunks lent to where memory is missing (virtual_lend.cpp).
  void borrow(const Request& request, const Site& site, Bytes room, Bytes wanted,
              Supply* supply) noexcept;
  bool lending_pays(const Request& request, Bytes created) const noexcept;
  Loan find_loan(const Request& request, Bytes missing, bool head) const noexcept;
  bool claim_loan(Loan* loan, bool head) noexcept;
  void place_loans(Site* site, Supply* supply) noexcept;
  Status map_loans(Supply* supply, Address address) noexcept;
  void settle_loans(const Supply& supply, Address address, bool small) noexcept;
  void settle_loan(const Loan& loan, Address address, bool small) noexcept;
  void abandon_loan(const Loan& loan) noexcept;

  // Chunks that serve at several places, brought together again (virtual_reunite.cpp).
  HollowBatch* reunite(const StreamSlot* taker) noexcept;
  bool is_idle(const Chunk* chunk, const StreamSlot* taker, std::size_t* pieces) const noexcept;
  bool give_up_place(Chunk* chunk, const StreamSlot* taker) noexcept;
  void hand_over(Chunk* chunk, const Block* piece) noexcept;
  void leave_ring(Chunk* chunk) noexcept;
  static Bytes shared_and_idle(const Chunk* chunk) noexcept;
  static bool check_ring(const Chunk* chunk) noexcept;

  // Memory back to the device (virtual_release.cpp).
  Bytes release(Bytes keep, HeapLock& lock) noexcept;
  Chunk* claim_idle_chunks(Arena& arena, Bytes wanted) noexcept;
  Block* carve(Block* block, Address address, Bytes size, Block** first) noexcept;
  static Address end_of_run(const Block* block) noexcept;
  bool is_hollow_elsewhere(const Chunk* chunk) const noexcept;
  bool give_back(const Chunk* chunk, HeapLock& lock) noexcept;
  Block* close_up(Block* first, Bytes size) noexcept;
  void keep(Block* first, Bytes size) noexcept;
  void drop_chunk(Chunk* chunk) noexcept;
  void keep_chunk(Chunk* chunk) noexcept;
  bool wait_for_device(HeapLock& lock) noexcept;
  bool leave_all_behind(Bytes* gone, HeapLock& lock) noexcept;
  Bytes releasable(const Arena& arena) const noexcept;

  Arena& arena_of(const Block* block) noexcept { return arenas_[block->small]; }

  Device& device_;
  const AllocationConfig config_;
  const VirtualOptions options_;
  mutable HeapMutex mutex_;
  BlockStore store_;
  FenceBatches batches_;
  Pool<Chunk> chunk_pool_;
  Pool<HollowBatch> hollow_pool_;
  HollowBatch* hollows_ = nullptr;  // the oldest first
  std::uint64_t moves_ = 0;         // batches so far
  std::uint64_t moves_past_ = 0;    // of them, so many are known to be left behind
  Arena arenas_[2];                 // [small]
  /// The block freed last on its own stream, not yet joined with its neighbours: many a program
  /// asks for the same size again at once.
  Block* recent_ = nullptr;
  StreamSlot* idle_;              // free blocks that are good for every stream
  StreamSlot* everywhere_;        // blocks freed as of all streams' work
  StreamSlot nobody_;             // unmapped blocks belong here
  std::atomic<Address> base_{0};  // of the reserved range
  Bytes span_ = 0;                // its length, set before its base
  Bytes returning_ = 0;           // bytes on their way home
  std::uint32_t operations_ = 0;
  std::uint64_t searches_ = 0;  // each has a number of its own, as each move has
  std::uint64_t orders_ = 0;
  std::uint64_t dead_streams_ = 0;
  Bytes leaving_ = 0;       // of chunks among the hollows whose memory goes, too
  std::size_t shared_ = 0;  // records of shared chunks beyond the first of each
  Bytes shared_bytes_ = 0;  // what they add up to
  int at_work_ = 0;         // threads that may have memory in hand without the lock
};

}  // namespace fragshim
