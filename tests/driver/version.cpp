#include "tests/driver/settings.hpp"

namespace standin {

const int built_version = STANDIN_BUILT_VERSION;

}  // namespace standin
