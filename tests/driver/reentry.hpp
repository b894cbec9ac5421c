// A driver that comes back to the process from within cuInit.
#pragma once

#include "tests/driver/cuda_api.hpp"

namespace standin {

/// With STANDIN_REENTER: looks the driver's own entries up by dlsym, which must give them, and
/// calls those that the rest of the process finds by these names. They must answer as the driver
/// does itself: `usable` says whether it is initialised by now.
CUresult reenter(bool usable);

}  // namespace standin
