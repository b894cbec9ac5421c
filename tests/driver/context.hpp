// Contexts come to life and die.
#pragma once

#include "tests/driver/objects.hpp"

namespace standin {

/// Brings a context to life. Takes the driver's lock as held.
void revive(Context& context, unsigned flags);
/// Completes a context's work and takes its streams, events and memory away.
void destroy(Context& context);

/// Frees an allocation by its kind. Takes no lock as held.
CUresult free_allocation(Address address);
/// Its parts for host memory, and for memory of another process; the table knows it no more.
CUresult release_host(Address address, const Allocation& allocation);
CUresult release_imported(Machine& machine, Address address, Bytes size);

}  // namespace standin
