// File names with the process, the host and the rank in them.
#pragma once

#include <string>
#include <string_view>

#include "config/environment.hpp"

namespace fragshim {

/// The rank of this process in a distributed job, as its launcher says: RANK,
/// OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, the first that is a number; else 0.
std::string process_rank(const Environment& environment);

/// The host's name as the system gives it; "localhost" where it gives none.
std::string host_name();

/// `pattern` with %p (process id), %h (host), %r (rank), %q{VAR} (a variable, empty where not set)
/// and %% put in. A '/' inside what is put in becomes '_'. Any other % stays as it is.
std::string expand_file_pattern(std::string_view pattern, const Environment& environment);

}  // namespace fragshim
