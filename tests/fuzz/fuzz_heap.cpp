// A program made of the fuzzer's bytes against every heap, with the checks of the model tests.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/model/heap_model.hpp"

using namespace fragshim;
using namespace fragshim::model;

namespace {

constexpr int longest_program = 2000;

Setup setup_from(Choices& choices) {
  Setup setup;
  setup.kind = static_cast<HeapKind>(choices.below(5));
  setup.capacity = (16 + choices.below(256)) * MiB;
  setup.largest = 24 * MiB;
  setup.fault_in = choices.one_in(2) ? 0 : 2 + choices.below(16);
  // Stitched memory is for every stream: it is only had where fences are.
  setup.context_fences = !choices.one_in(4) || setup.kind == HeapKind::stitched;
  if (choices.one_in(4)) setup.config.max_split_size = (20 + choices.below(16)) * MiB;
  if (choices.one_in(4)) setup.config.garbage_collection_threshold = 0.5;
  if (choices.one_in(4)) {
    if (setup.native()) {
      setup.allowed = (16 + choices.below(256)) * MiB;
    } else {
      setup.stubborn_in = 1 + choices.below(8);
    }
  }
  return setup;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  ByteChoices choices(bytes, size);
  static const bool trace = std::getenv("FRAGSHIM_TRACE_FUZZ") != nullptr;
  try {
    HeapModel model(setup_from(choices), choices, trace);
    for (int i = 0; i < longest_program && !choices.exhausted(); ++i) model.step();
    model.finish();
  } catch (const Wrong& wrong) {
    std::fprintf(stderr, "%s\n", wrong.what());
    std::abort();
  }
  return 0;
}
