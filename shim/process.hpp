// The life of the process around the shim: when it stands aside, what its settings are, and how it
// ends. Loading the library reads the environment and nothing else.
#pragma once

#include <atomic>

namespace fragshim {

struct Settings;

namespace detail {
/// What the hot path asks; constant-initialised, so it is right before any constructor has run.
extern constinit std::atomic<bool> standing_aside;
}  // namespace detail

/// True where every call goes straight to the driver: FRAGSHIM_MODE=off, or the forked child of a
/// process that had used CUDA (its tables describe the parent's memory).
inline bool passing_through() noexcept {
  return detail::standing_aside.load(std::memory_order_relaxed);
}

/// The settings of this process, read once at the first use of CUDA and kept for ever. Whatever is
/// wrong with them is said on stderr, one line each, unless fragrun has checked them already.
/// From then on a forked child stands aside.
const Settings& settings() noexcept;

/// FRAGSHIM_MODE=observe: measure, but let every call through.
bool observing() noexcept;

/// Has `finish` called once when the process ends (library destructor or quick_exit), in the order
/// opposite to registration; never in a forked child. Room for a few; false when it is full.
bool at_exit(void (*finish)()) noexcept;

}  // namespace fragshim
