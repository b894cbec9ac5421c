#include "tests/driver/pools.hpp"

#include <algorithm>

#include "tests/driver/call.hpp"
#include "tests/driver/context.hpp"
#include "tests/driver/pool_table.hpp"

namespace standin {
namespace {

using fragshim::MiB;

constexpr Bytes unit = 512;
constexpr Bytes usual_chunk = 32 * MiB;

/// What was freed on streams that have come to it by now is free. Takes the pools' lock as held.
void reap(Pool& pool) {
  std::erase_if(pool.freed, [&pool](const Pool::Freed& freed) {
    if (!pool.machine->order().passed(freed.clock)) return false;
    pool.free.give(freed.address, freed.size);
    return true;
  });
}

/// The smallest block freed on that very stream that is large enough; what is left of it stays.
Address take_freed(Pool& pool, std::uint64_t stream, Bytes size) {
  Pool::Freed* best = nullptr;
  for (Pool::Freed& freed : pool.freed) {
    if (freed.stream != stream || freed.size < size) continue;
    if (best == nullptr || freed.size < best->size) best = &freed;
  }
  if (best == nullptr) return 0;
  const Address address = best->address;
  best->address += size;
  best->size -= size;
  if (best->size == 0) pool.freed.erase(pool.freed.begin() + (best - pool.freed.data()));
  return address;
}

bool grow(Pool& pool, Bytes size) {
  fragshim::SimulatedDevice& device = pool.machine->device;
  const Bytes chunk = std::max(usual_chunk, fragshim::round_up(size, 2 * MiB));
  Address address = 0;
  Pool::Chunk made{chunk, {}};
  if (!device.reserve(chunk, &address).ok()) return false;
  const bool created = device.create(chunk, &made.memory).ok();
  if (created && device.map(address, chunk, made.memory).ok()) {
    pool.chunks.emplace(address, made);
    pool.free.give(address, chunk);
    pool.reserved.add(chunk);
    return true;
  }
  if (created) device.destroy(made.memory, chunk);
  device.unreserve(address, chunk);
  return false;
}

Address take(Pool& pool, std::uint64_t stream, Bytes size) {
  const Lock lock(pool_mutex());
  reap(pool);
  Address address = take_freed(pool, stream, size);
  if (address == 0) address = pool.free.take(size, unit).value_or(0);
  if (address == 0 && grow(pool, size)) address = pool.free.take(size, unit).value_or(0);
  if (address != 0) pool.used.add(size);
  return address;
}

/// Waits for every free and gives all that is unused back, so that a last attempt can be made.
void squeeze(Machine& machine) {
  machine.order().complete(machine.order().record_all());
  for (Pool* pool : pools_of(machine)) trim(*pool, 0);
}

void trim_locked(Pool& pool, Bytes keep) {
  reap(pool);
  for (auto chunk = pool.chunks.begin(); chunk != pool.chunks.end();) {
    const auto [address, state] = *chunk;
    if (pool.reserved.now <= keep) return;
    if (!pool.free.take_at(address, state.size)) {
      ++chunk;
      continue;
    }
    pool.machine->device.unmap(address, state.size);
    pool.machine->device.destroy(state.memory, state.size);
    pool.machine->device.unreserve(address, state.size);
    pool.reserved.now -= state.size;
    chunk = pool.chunks.erase(chunk);
  }
}

}  // namespace

std::mutex& pool_mutex() {
  static std::mutex& it = *new std::mutex;
  return it;
}

void give_to_pool(Pool& pool, Address address, Bytes size) {
  const Lock lock(pool_mutex());
  pool.used.now -= size;
  pool.free.give(address, size);
}

void trim(Pool& pool, Bytes keep) {
  const Lock lock(pool_mutex());
  trim_locked(pool, keep);
}

void trim_to_thresholds(Machine& machine) {
  for (Pool* pool : pools_of(machine)) {
    const Lock lock(pool_mutex());
    if (pool->reserved.now > pool->threshold) trim_locked(*pool, pool->threshold);
  }
}

CUresult allocate_from(Pool& pool, Stream& stream, Bytes size, CUdeviceptr* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = 0;
  if (size == 0) return CUDA_SUCCESS;
  const Bytes length = fragshim::round_up(size, unit);
  if (length > pool.machine->device.capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  Address address = take(pool, stream.id, length);
  if (address == 0 && !stream.capture) {
    squeeze(*pool.machine);
    address = take(pool, stream.id, length);
  }
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.kind = MemoryKind::pool;
  allocation.size = length;
  allocation.context = stream.context->id;
  allocation.device = pool.machine->ordinal;
  allocation.pool = &pool;
  allocation.buffer_id = new_id();
  const Lock lock(driver().mutex);
  if (stream.capture) {
    allocation.kind = MemoryKind::graph;
    stream.capture->graph->allocations[address] = allocation;
  }
  driver().allocations[address] = allocation;
  *out = address;
  return CUDA_SUCCESS;
}

void allocate_again(Address address, const Allocation& allocation) {
  {
    const Lock lock(pool_mutex());
    allocation.pool->used.add(allocation.size);
  }
  const Lock lock(driver().mutex);
  driver().allocations[address] = allocation;
}

void keep_for_graph(const Allocation& allocation) {
  const Lock lock(pool_mutex());
  allocation.pool->used.now -= allocation.size;
}

void give_from_graph(Address address, const Allocation& allocation) {
  const Lock lock(pool_mutex());
  allocation.pool->free.give(address, allocation.size);
}

CUresult free_on(Stream& stream, CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  Allocation allocation;
  {
    const Lock lock(driver().mutex);
    const auto found = driver().allocations.find(address);
    if (found == driver().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    allocation = found->second;
    const bool streamed =
        allocation.kind == MemoryKind::pool || allocation.kind == MemoryKind::graph;
    if (stream.capture) {  // a node, which frees its graph's own memory only
      return allocation.kind == MemoryKind::graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (!streamed && allocation.kind != MemoryKind::plain) return CUDA_ERROR_INVALID_VALUE;
    if (streamed) driver().allocations.erase(found);
  }
  fragshim::WorkOrder& order = stream.context->machine->order();
  WorkClock clock = order.record(stream.id);
  if (allocation.kind == MemoryKind::plain) {
    order.complete(clock);
    return free_allocation(address);
  }
  if (allocation.kind == MemoryKind::graph) {
    keep_for_graph(allocation);
    return CUDA_SUCCESS;
  }
  if (stream.context->machine != allocation.pool->machine) {
    order.complete(clock);
    clock.clear();
  }
  const Lock lock(pool_mutex());
  allocation.pool->used.now -= allocation.size;
  allocation.pool->freed.push_back({address, allocation.size, stream.id, std::move(clock)});
  return CUDA_SUCCESS;
}

}  // namespace standin
