// Runs of a model over many seeds. FRAGSHIM_SEED=n runs that seed alone and traces it on stderr;
// FRAGSHIM_MODEL_ROUNDS=n runs n times as many seeds.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>

#include "tests/catch.hpp"

namespace fragshim::model {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

/// Calls run(seed, trace) for `count` seeds and fails the test, naming the seed, if it throws.
template <class Run>
void for_each_seed(std::uint64_t count, Run run) {
  const bool one = std::getenv("FRAGSHIM_SEED") != nullptr;
  const std::uint64_t first = one ? number_from("FRAGSHIM_SEED", 0) : 1;
  const std::uint64_t end =
      one ? first + 1 : first + count * number_from("FRAGSHIM_MODEL_ROUNDS", 1);
  for (std::uint64_t seed = first; seed < end; ++seed) {
    try {
      run(seed, one);
    } catch (const std::exception& failure) {
      FAIL("FRAGSHIM_SEED=" << seed << ": " << failure.what());
    }
  }
  SUCCEED();
}

}  // namespace fragshim::model
