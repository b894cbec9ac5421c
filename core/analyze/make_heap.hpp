// The one place where a policy's name becomes an allocator.
#pragma once

#include <memory>

#include "config/allocation_config.hpp"
#include "core/alloc/chunk_sizes.hpp"
#include "core/alloc/heap.hpp"

namespace fragshim {

/// A heap of the policy on `device`, which outlives it. `allowed` is what PyTorch's rules are to
/// count on; the device must not give more than that either. Throws std::invalid_argument for a
/// policy that is not the name of a heap. `chunks` concerns stitching alone. One thread at a time
/// may use the heap.
std::unique_ptr<Heap> make_heap(Device& device, PolicyKind policy, const AllocationConfig& config,
                                Bytes allowed, const ChunkSizes& chunks = {});

}  // namespace fragshim
