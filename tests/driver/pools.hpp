// Memory pools: stream-ordered memory, handed out again on the stream that freed it at once, and on
// the others once that stream has come to the free.
#pragma once

#include "core/device/simulated_space.hpp"
#include "tests/driver/objects.hpp"

namespace standin {

struct Pool {
  struct Chunk {
    Bytes size = 0;
    fragshim::Physical memory;
  };
  struct Freed {  // on a stream that may not have come to it
    Address address = 0;
    Bytes size = 0;
    std::uint64_t stream = 0;
    WorkClock clock;
  };
  struct Level {
    Bytes now = 0;
    Bytes high = 0;
    void add(Bytes size) {
      now += size;
      if (now > high) high = now;
    }
  };

  Machine* machine = nullptr;
  bool is_default = false;
  fragshim::AddressSpace free;
  std::map<Address, Chunk> chunks;
  std::vector<Freed> freed;
  Level used;
  Level reserved;
  Bytes threshold = 0;  // what is kept at a synchronisation
  std::map<int, int> reuse{{CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1},
                           {CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1},
                           {CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1}};
  std::map<int, CUmemAccess_flags> access;  // of other devices
};

/// Gives a new machine its default pool.
void make_default_pool(Machine& machine);
/// Puts an idle block back.
void give_to_pool(Pool& pool, Address address, Bytes size);
/// Whether the address lies in memory that some pool holds.
bool in_a_pool(Address address);
/// Synchronisations do it: each pool of the machine keeps no more than its threshold.
void trim_to_thresholds(Machine& machine);

/// Gives whole free chunks back until at most `keep` bytes are reserved.
void trim(Pool& pool, Bytes keep);
/// Allocates for work on a stream. On a stream that is captured it becomes part of the graph.
CUresult allocate_from(Pool& pool, Stream& stream, Bytes size, CUdeviceptr* out);
/// A graph's memory, once freed, waits for the next launch, which allocates it again, or for the
/// end of the graph, which gives it to the pool.
void keep_for_graph(const Allocation& allocation);
void allocate_again(Address address, const Allocation& allocation);
void give_from_graph(Address address, const Allocation& allocation);
/// Frees whatever begins at the address, as of the present end of the stream's work.
CUresult free_on(Stream& stream, CUdeviceptr address);

/// The lock of all pools; taken behind the driver's, never held while work is completed.
std::mutex& pool_mutex();

}  // namespace standin
