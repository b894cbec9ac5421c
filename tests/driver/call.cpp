#include "tests/driver/call.hpp"

#include <pthread.h>

#include <string>
#include <unordered_map>

#include "tests/driver/settings.hpp"

namespace standin {
namespace {

std::atomic<bool> is_initialised{false};
std::atomic<bool> is_copy{false};  // forked from an initialised process
std::atomic<bool> is_over{false};

struct Calls {
  std::mutex mutex;
  std::unordered_map<std::string, unsigned long long> counts;
  unsigned long long total = 0;
  std::vector<FailRule> rules = settings().failures;
};

Calls& calls() {
  static Calls& it = *new Calls;
  return it;
}

bool strikes(FailRule& rule, unsigned long long count) {
  if (rule.at != count) return false;
  rule.at = rule.step == 0 ? 0 : rule.at + rule.step;
  return true;
}

CUresult count(const char* name) {
  Calls& all = calls();
  const Lock lock(all.mutex);
  const unsigned long long of_name = ++all.counts[name];
  const unsigned long long of_all = ++all.total;
  CUresult verdict = CUDA_SUCCESS;
  for (FailRule& rule : all.rules) {
    const bool any = rule.entry == "*";
    if (!any && rule.entry != name) continue;
    if (strikes(rule, any ? of_all : of_name)) verdict = static_cast<CUresult>(rule.code);
  }
  return verdict;
}

__attribute__((destructor)) void end() { is_over = true; }

}  // namespace

CUresult begin(const char* name, bool needs_init) {
  if (is_over) return CUDA_ERROR_DEINITIALIZED;
  if (is_copy) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult ordered = count(name);
  if (ordered != CUDA_SUCCESS) return ordered;
  return needs_init && !is_initialised ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

unsigned long long calls_of(const char* name) {
  Calls& all = calls();
  const Lock lock(all.mutex);
  const auto found = all.counts.find(name);
  return found == all.counts.end() ? 0 : found->second;
}

bool initialised() { return is_initialised; }

void set_initialised() {
  if (is_initialised.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { is_copy = true; });
}

ContextStack& context_stack() {
  thread_local ContextStack stack{};
  return stack;
}

Context* current_context() {
  const ContextStack& stack = context_stack();
  return stack.depth == 0 ? nullptr : stack.items[stack.depth - 1];
}

CUresult usable(const Context* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Lock lock(driver().mutex);
  return context->live ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult result_of(fragshim::Status status) {
  switch (status.outcome) {
    case fragshim::Outcome::ok:
      return CUDA_SUCCESS;
    case fragshim::Outcome::out_of_memory:
    case fragshim::Outcome::over_limit:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case fragshim::Outcome::not_ready:
      return CUDA_ERROR_NOT_READY;
    case fragshim::Outcome::unsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace standin

/// How often the entry of that exported name was called.
extern "C" unsigned long long standin_calls(const char* name) { return standin::calls_of(name); }
