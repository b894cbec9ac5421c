// PyTorch is brought to the stream-ordered door by its own setting, before it reads it:
// backend:cudaMallocAsync, in both variables, since its versions differ in which they read first.
#pragma once

namespace fragshim {

/// Sets PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF to the handed text and remembers the user's
/// own (FRAGSHIM_TORCH_CONF) for the settings and for child processes. Where PyTorch shall keep its
/// own allocator (FRAGSHIM_MODE off or observe, FRAGSHIM_TORCH=native, or backend:native in the
/// conf string), whatever a parent process handed over is taken back. For the library's
/// constructor, while there is one thread.
void hand_over_to_torch() noexcept;

/// True if this process handed PyTorch its setting and the program has set another since.
bool overridden_after_start() noexcept;

}  // namespace fragshim
