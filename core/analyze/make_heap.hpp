// The one place where a policy's name becomes an allocator.
#pragma once

#include <memory>

#include "config/allocation_config.hpp"
#include "core/alloc/heap.hpp"

namespace fragshim {

/// A heap of the policy on `device`, which outlives it, that may hold `allowed` bytes. Throws
/// std::invalid_argument for a policy that there is no heap for.
std::unique_ptr<Heap> make_heap(Device& device, PolicyKind policy, const AllocationConfig& config,
                                Bytes allowed);

}  // namespace fragshim
