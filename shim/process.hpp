// The life of the process around the shim: when it stands aside, what its settings are, and how it
// ends. Loading the library reads the environment, hands PyTorch its setting, and does no more: no
// file, no message, no CUDA.
#pragma once

#include <atomic>
#include <cstdint>

#include "config/settings.hpp"

namespace fragshim {

namespace detail {
enum class Standing : std::uint8_t { between, aside, unknown };
/// Constant-initialised, so that a hook called before our constructor ran is right too.
extern constinit std::atomic<Standing> standing;
/// Reads FRAGSHIM_MODE and remembers what it means; true where the shim stands aside.
bool stands_aside() noexcept;
}  // namespace detail

/// True where every call goes straight to the driver: FRAGSHIM_MODE=off, or the forked child of a
/// process that had used CUDA (the tables describe memory that the child does not have).
inline bool passing_through() noexcept {
  const auto standing = detail::standing.load(std::memory_order_relaxed);
  return standing != detail::Standing::between && detail::stands_aside();
}

/// The settings of this process, read once at the first use of CUDA and kept for ever. Whatever is
/// wrong with them is said on stderr then, one line each, unless fragrun has checked them already.
/// From the first call on, a forked child stands aside.
const Settings& settings() noexcept;

/// False where settings() are but the defaults, for want of host memory: what is decided by them
/// for good has to wait.
bool settings_are_read() noexcept;

/// FRAGSHIM_MODE=observe: measure, but let every call through.
inline bool observing() noexcept { return settings().mode == Mode::observe; }

}  // namespace fragshim
