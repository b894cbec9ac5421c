#include "shim/process.hpp"

#include <pthread.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "shim/log.hpp"
#include "shim/log_file.hpp"
#include "shim/published.hpp"
#include "shim/torch.hpp"

namespace fragshim {

namespace detail {

constinit std::atomic<Standing> standing{Standing::unknown};

bool stands_aside() noexcept {
  Standing now = standing.load(std::memory_order_relaxed);
  if (now == Standing::unknown) {
    const char* const mode = std::getenv("FRAGSHIM_MODE");
    const bool off = mode && std::string_view(mode) == "off";
    const Standing meant = off ? Standing::aside : Standing::between;
    // Only from unknown: another thread may have found out, a fork may have decided otherwise.
    if (standing.compare_exchange_strong(now, meant, std::memory_order_relaxed)) now = meant;
  }
  return now == Standing::aside;
}

}  // namespace detail

namespace {

constinit Published<Settings> published;
constinit std::atomic<bool> watched{false};

/// The child has its parent's tables, but not the memory they speak of.
void after_fork_in_child() {
  detail::standing.store(detail::Standing::aside, std::memory_order_relaxed);
  log::after_fork_in_child();
}

void finish_log() { log::finish(); }

/// Before this, a forked child is as good as a new process.
void watch_fork_and_exit() {
  if (watched.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  std::at_quick_exit(finish_log);
}

void say_problems(const Settings& settings) {
  for (const Problem& problem : settings.problems) log::write_stderr(problem.line());
}

/// What is left where there is no host memory to read settings: the defaults, never destroyed.
const Settings& defaults() noexcept {
  alignas(Settings) static std::byte place[sizeof(Settings)];
  static const Settings* const made = new (place) Settings;
  return *made;
}

const Settings& load() noexcept {
  watch_fork_and_exit();
  try {
    auto made = std::make_unique<const Settings>(load_settings());
    const Settings* const known = published.publish(made.get());
    if (known != made.get()) return *known;
    static_cast<void>(made.release());
    const bool checked_by_fragrun = std::getenv("FRAGSHIM_FLAGS") != nullptr;
    if (!checked_by_fragrun) say_problems(*known);
    return *known;
  } catch (const std::exception&) {
    const Settings* const known = published.get();
    return known ? *known : defaults();
  }
}

__attribute__((constructor)) void enter() { hand_over_to_torch(); }

// After every destructor of the program and every atexit handler, which may still free memory.
// What this needs is never destroyed.
__attribute__((destructor)) void leave() { log::finish(); }

}  // namespace

const Settings& settings() noexcept {
  const Settings* const known = published.get();
  return known ? *known : load();
}

bool settings_are_read() noexcept { return &settings() == published.get(); }

}  // namespace fragshim
