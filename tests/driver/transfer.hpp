// Ranges of memory that work touches.
#pragma once

#include "tests/driver/objects.hpp"

namespace standin {

/// Adds the device memory at [address, address + size) to what `work` touches. A host address is
/// none of the device's business. CUDA_ERROR_INVALID_VALUE where not all of it is live memory.
CUresult add_touch(const Stream& stream, Address address, Bytes size, fragshim::Access access,
                   Work* work);

/// Whether all that the work touches is still where it was at submission; else that is a hazard.
bool still_there(Machine& machine, std::uint64_t stream,
                 const std::vector<fragshim::Touch>& touches);

/// Gives the work a body that runs only if its memory is still there.
template <class Body>
void set_body(const Stream& stream, Work* work, Body body) {
  work->run = [machine = stream.context->machine, id = stream.id, touches = work->touches,
               body = std::move(body)]() mutable {
    if (still_there(*machine, id, touches)) body();
  };
}

}  // namespace standin
