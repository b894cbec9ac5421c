// Contexts: own and primary ones, current and not.
#include "tests/driver/context.hpp"

#include <algorithm>

#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"
#include "tests/driver/pools.hpp"

namespace standin {

void revive(Context& context, unsigned flags) {
  context.id = new_id();
  context.live = true;
  context.flags = flags;
  context.legacy = std::make_shared<Stream>();
  context.legacy->id = new_id();
  context.legacy->context = &context;
  context.legacy->kind = StreamKind::legacy;
  context.machine->order().add_stream(context.legacy->id, StreamKind::legacy, context.id);
}

void destroy(Context& context) {
  fragshim::WorkOrder& order = context.machine->order();
  order.complete(order.record_group(context.id));
  std::vector<Address> memory;
  {
    const Lock lock(driver().mutex);
    context.live = false;
    std::erase_if(driver().streams, [&](const auto& entry) {
      if (entry.second->context != &context) return false;
      order.remove_stream(entry.second->id);
      if (entry.second->capture) driver().captures.erase(entry.second->capture);
      return true;
    });
    std::erase_if(driver().events,
                  [&](const auto& entry) { return entry.second->context == &context; });
    for (const auto& [thread, stream] : context.per_thread) order.remove_stream(stream->id);
    order.remove_stream(context.legacy->id);
    context.per_thread.clear();
    context.legacy.reset();
    for (const auto& [address, allocation] : driver().allocations) {
      if (allocation.context == context.id) memory.push_back(address);
    }
  }
  for (const Address address : memory) free_allocation(address);
}

namespace {

void push(Context* context) {
  ContextStack& stack = context_stack();
  if (stack.depth < static_cast<int>(std::size(stack.items))) {
    stack.items[stack.depth++] = context;
  }
}

Context* pop() {
  ContextStack& stack = context_stack();
  return stack.depth == 0 ? nullptr : stack.items[--stack.depth];
}

/// The context of a handle, dead or alive; null where it is none.
Context* context_of(CUcontext handle) {
  const Lock lock(driver().mutex);
  const auto& all = driver().contexts;
  const bool known = std::any_of(all.begin(), all.end(), [handle](const auto& context) {
    return context.get() == reinterpret_cast<Context*>(handle);
  });
  return known ? reinterpret_cast<Context*>(handle) : nullptr;
}

CUcontext handle_of(Context* context) { return reinterpret_cast<CUcontext>(context); }

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
  Machine* machine = machine_of(device);
  if (machine == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(driver().mutex);
  auto& all = driver().contexts;
  // Handles are used again, as the real driver's are.
  const auto dead = std::find_if(all.begin(), all.end(), [machine](const auto& context) {
    return !context->live && !context->primary && context->machine == machine;
  });
  Context* context = nullptr;
  if (dead != all.end()) {
    context = dead->get();
  } else {
    all.push_back(std::make_unique<Context>());
    context = all.back().get();
    context->machine = machine;
  }
  revive(*context, flags);
  push(context);
  *out = handle_of(context);
  return CUDA_SUCCESS;
}

CUresult destroy_own(CUcontext handle) {
  Context* context = context_of(handle);
  if (context == nullptr || context->primary || !context->live) return CUDA_ERROR_INVALID_CONTEXT;
  destroy(*context);
  if (current_context() == context) pop();
  return CUDA_SUCCESS;
}

CUresult reset(CUdevice device) {
  if (machine_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context& context = *driver().primaries[static_cast<std::size_t>(device)];
  if (context.live) destroy(context);
  return CUDA_SUCCESS;
}

CUresult release(CUdevice device) {
  if (machine_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context& context = *driver().primaries[static_cast<std::size_t>(device)];
  {
    const Lock lock(driver().mutex);
    if (context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context.retained != 0 || !context.live) return CUDA_SUCCESS;
  }
  destroy(context);
  return CUDA_SUCCESS;
}

CUresult set_flags(CUdevice device, unsigned flags) {
  if (machine_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const Lock lock(driver().mutex);
  driver().primaries[static_cast<std::size_t>(device)]->flags = flags;
  return CUDA_SUCCESS;
}

CUresult synchronize(Context& context) {
  const CUresult verdict = unsafe_in_capture(context, true);
  if (verdict != CUDA_SUCCESS) return verdict;
  fragshim::WorkOrder& order = context.machine->order();
  order.complete(order.record_group(context.id));
  trim_to_thresholds(*context.machine);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
  return entry("cuCtxCreate_v2", [&] { return create(out, flags, device); });
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam_st*, int, unsigned int flags,
                                CUdevice device) {
  return entry("cuCtxCreate_v3", [&] { return create(out, flags, device); });
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* out, CUctxCreateParams_st*, unsigned int flags,
                                CUdevice device) {
  return entry("cuCtxCreate_v4", [&] { return create(out, flags, device); });
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  return entry("cuCtxDestroy", [&] { return destroy_own(context); });
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  return entry("cuCtxDestroy_v2", [&] { return destroy_own(context); });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  return entry("cuCtxSetCurrent", [&] {
    Context* context = handle == nullptr ? nullptr : context_of(handle);
    if (handle != nullptr && context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    pop();
    if (context != nullptr) push(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* out) {
  return entry("cuCtxGetCurrent", [&] {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = handle_of(current_context());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext handle) {
  return entry("cuCtxPushCurrent_v2", [&] {
    Context* context = context_of(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    push(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* out) {
  return entry("cuCtxPopCurrent_v2", [&] {
    Context* context = pop();
    if (out != nullptr) *out = handle_of(context);
    return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return context_entry("cuCtxGetDevice", [&](Context& context) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = context.machine->ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
  return context_entry("cuCtxGetFlags", [&](Context& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return entry("cuCtxGetId", [&] {
    Context* context = handle == nullptr ? current_context() : context_of(handle);
    const CUresult verdict = usable(context);
    if (verdict != CUDA_SUCCESS) return verdict;
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  return entry("cuCtxGetApiVersion", [&] {
    const CUresult verdict = usable(handle == nullptr ? current_context() : context_of(handle));
    if (verdict != CUDA_SUCCESS) return verdict;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSynchronize() {
  return context_entry("cuCtxSynchronize", [](Context& context) { return synchronize(context); });
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext handle) {
  return entry("cuCtxSynchronize_v2", [&] {
    Context* context = handle == nullptr ? current_context() : context_of(handle);
    const CUresult verdict = usable(context);
    return verdict == CUDA_SUCCESS ? synchronize(*context) : verdict;
  });
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned int) {
  return context_entry("cuCtxEnablePeerAccess", [&](Context&) { return usable(context_of(peer)); });
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  return entry("cuDevicePrimaryCtxRetain", [&] {
    if (machine_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Lock lock(driver().mutex);
    Context& context = *driver().primaries[static_cast<std::size_t>(device)];
    if (!context.live) revive(context, context.flags);
    ++context.retained;
    *out = handle_of(&context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return entry("cuDevicePrimaryCtxRelease", [&] { return release(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return entry("cuDevicePrimaryCtxRelease_v2", [&] { return release(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return entry("cuDevicePrimaryCtxReset", [&] { return reset(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return entry("cuDevicePrimaryCtxReset_v2", [&] { return reset(device); });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
  return entry("cuDevicePrimaryCtxSetFlags", [&] { return set_flags(device, flags); });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return entry("cuDevicePrimaryCtxSetFlags_v2", [&] { return set_flags(device, flags); });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return entry("cuDevicePrimaryCtxGetState", [&] {
    if (machine_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Lock lock(driver().mutex);
    const Context& context = *driver().primaries[static_cast<std::size_t>(device)];
    *flags = context.flags;
    *active = context.live ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
