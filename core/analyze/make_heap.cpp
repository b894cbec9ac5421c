#include "core/analyze/make_heap.hpp"

#include <stdexcept>

#include "core/alloc/native_heap.hpp"
#include "core/alloc/virtual_heap.hpp"

namespace fragshim {

std::unique_ptr<Heap> make_heap(Device& device, PolicyKind policy, const AllocationConfig& config,
                                Bytes allowed, const ChunkSizes& chunks) {
  if (policy == PolicyKind::stitch) {
    VirtualOptions options;
    options.callers = Callers::one;
    options.chunks = chunks;
    return std::make_unique<VirtualHeap>(device, config, options);
  }
  if (policy == PolicyKind::native) {
    NativeOptions options;
    options.allowed = allowed;
    options.callers = Callers::one;
    return std::make_unique<NativeHeap>(device, config, options);
  }
  throw std::invalid_argument("no heap for this policy");
}

}  // namespace fragshim
