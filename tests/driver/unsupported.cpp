// Every entry that no other file defines: found by look-ups, and of no use. Weak, so that one
// defined elsewhere takes its place.
extern "C" {

#define ENTRY(base, version, stream, symbol) \
  __attribute__((weak)) int symbol() { return 801; /* CUDA_ERROR_NOT_SUPPORTED */ }
#include "tests/driver/symbols.def"
#undef ENTRY

}  // extern "C"
