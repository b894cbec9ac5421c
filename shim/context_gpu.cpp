// What all contexts of one GPU share: its limit and its default pool.
#include <algorithm>
#include <array>

#include "config/settings.hpp"
#include "shim/context.hpp"
#include "shim/driver.hpp"
#include "shim/process.hpp"

namespace fragshim {
namespace {

constinit std::array<Gpu, Gpu::max_gpus> gpus{};
constinit std::array<std::atomic<bool>, Gpu::max_gpus> prepared{};

/// What this process may hold of a card with `total` bytes.
Bytes allowed(const AllocationConfig& config, Bytes total) noexcept {
  const double fraction = config.per_process_memory_fraction;
  const Bytes share =
      fraction < 1 ? static_cast<Bytes>(fraction * static_cast<double>(total)) : unlimited;
  return std::min<Bytes>(share, config.memory_limit);
}

/// Idempotent, so that threads may do it at once.
void prepare(CUdevice device, Gpu& gpu) noexcept {
  const Driver& real = *driver();
  std::size_t total = 0;
  if (real.cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS) {
    gpu.total.store(total, std::memory_order_relaxed);
    gpu.budget.set_limit(allowed(settings().allocation, total));
  }
  CUmemoryPool pool = nullptr;
  CUmemoryPool current = nullptr;
  if (real.cuDeviceGetDefaultMemPool && real.cuDeviceGetMemPool &&
      real.cuDeviceGetDefaultMemPool(&pool, device) == CUDA_SUCCESS &&
      real.cuDeviceGetMemPool(&current, device) == CUDA_SUCCESS) {
    gpu.other_pool.store(current != pool, std::memory_order_relaxed);
    gpu.default_pool.store(pool, std::memory_order_relaxed);
  }
}

}  // namespace

CUdevice Gpu::ordinal() const noexcept { return static_cast<CUdevice>(this - gpus.data()); }

Gpu* gpu_at(CUdevice device) noexcept {
  if (device < 0 || device >= Gpu::max_gpus) return nullptr;
  const auto index = static_cast<std::size_t>(device);
  if (!prepared[index].load(std::memory_order_acquire)) {
    if (!settings_are_read()) return nullptr;
    prepare(device, gpus[index]);
    prepared[index].store(true, std::memory_order_release);
  }
  return &gpus[index];
}

Gpu* gpu_of_default_pool(CUmemoryPool pool) noexcept {
  int count = 0;
  if (pool == nullptr || driver()->cuDeviceGetCount(&count) != CUDA_SUCCESS) return nullptr;
  for (CUdevice device = 0; device < count; ++device) {
    Gpu* const gpu = gpu_at(device);
    if (gpu != nullptr && gpu->default_pool.load(std::memory_order_relaxed) == pool) return gpu;
  }
  return nullptr;
}

}  // namespace fragshim
