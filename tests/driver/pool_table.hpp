// Which pools there are.
#pragma once

#include "tests/driver/pools.hpp"

namespace standin {

std::vector<Pool*> pools_of(const Machine& machine);
/// The pool of a handle; null where it is none.
Pool* find_pool(CUmemoryPool handle);
/// The pool that a device's cuMemAllocAsync draws on.
Pool& current_pool(const Machine& machine);

}  // namespace standin
