// The user's conf string survives that PyTorch is handed another, in children too.
#include "config/torch_conf.hpp"

#include "config/settings.hpp"
#include "tests/catch.hpp"
#include "tests/unit/config_map_environment.hpp"

using namespace fragshim;

namespace {

constexpr const char* handed = "backend:cudaMallocAsync";

void apply_hand_over(MapEnvironment& environment) {
  for (const VariableChange& change : hand_over(environment, handed)) {
    environment.set(change.name, change.value);
  }
}

void check_original(const MapEnvironment& environment, const std::string& text,
                    const std::string& variable) {
  const ConfSource source = original_conf(environment);
  CHECK(source.text == text);
  CHECK(source.variable == variable);
}

}  // namespace

TEST_CASE("what PyTorch reads is the handed conf; what fragshim reads is the user's", "[config]") {
  MapEnvironment environment{{"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}};
  for (int generation = 0; generation < 3; ++generation) {  // the process, its child, its child's
    apply_hand_over(environment);
    CHECK(environment.get("PYTORCH_CUDA_ALLOC_CONF") == handed);
    CHECK(environment.get("PYTORCH_ALLOC_CONF") == handed);
    check_original(environment, "max_split_size_mb:64", "PYTORCH_ALLOC_CONF");
    const Settings settings = load_settings(environment);
    CHECK(settings.allocation.max_split_size == 64u << 20);
    CHECK(settings.conf_source == "PYTORCH_ALLOC_CONF");
    CHECK(settings.backend == Backend::unset);
    CHECK(settings.problems.empty());
  }
}

TEST_CASE("a user without a conf string has none after the hand-over either", "[config]") {
  MapEnvironment environment{};
  apply_hand_over(environment);
  CHECK(environment.get("PYTORCH_CUDA_ALLOC_CONF") == handed);
  check_original(environment, "", "");
  apply_hand_over(environment);
  check_original(environment, "", "");
}

TEST_CASE("an empty conf string is remembered as one", "[config]") {
  MapEnvironment environment{{"PYTORCH_CUDA_ALLOC_CONF", ""},
                             {"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}};
  apply_hand_over(environment);
  check_original(environment, "", "PYTORCH_CUDA_ALLOC_CONF");
}

TEST_CASE("FRAGSHIM_CONF counts for fragshim; PyTorch's own is kept beside it", "[config]") {
  MapEnvironment environment{{"FRAGSHIM_CONF", "policy:native"},
                             {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"}};
  apply_hand_over(environment);
  check_original(environment, "policy:native", "FRAGSHIM_CONF");
  environment.set("FRAGSHIM_CONF", std::nullopt);
  check_original(environment, "max_split_size_mb:64", "PYTORCH_CUDA_ALLOC_CONF");
}

TEST_CASE("a child that sets PyTorch's variable itself means what it says", "[config]") {
  MapEnvironment environment{{"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}};
  apply_hand_over(environment);
  environment.set("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128");
  check_original(environment, "max_split_size_mb:128", "PYTORCH_CUDA_ALLOC_CONF");
  apply_hand_over(environment);
  check_original(environment, "max_split_size_mb:128", "PYTORCH_CUDA_ALLOC_CONF");
}

TEST_CASE("a child sees what it would see without fragshim", "[config]") {
  // PYTORCH_CUDA_ALLOC_CONF was never set by the user: the other variable's new value counts.
  MapEnvironment changed{{"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}};
  apply_hand_over(changed);
  changed.set("PYTORCH_ALLOC_CONF", "max_split_size_mb:256");
  check_original(changed, "max_split_size_mb:256", "PYTORCH_ALLOC_CONF");
  // The variable that held it was removed: no conf string, and no stale one to remember.
  MapEnvironment removed{{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"}};
  apply_hand_over(removed);
  removed.set("PYTORCH_CUDA_ALLOC_CONF", std::nullopt);
  check_original(removed, "", "");
  apply_hand_over(removed);
  CHECK_FALSE(removed.get("FRAGSHIM_TORCH_CONF"));
  check_original(removed, "", "");
}

TEST_CASE("without a remembered variable the original counts as PyTorch's first", "[config]") {
  const MapEnvironment environment{{"PYTORCH_CUDA_ALLOC_CONF", handed},
                                   {"FRAGSHIM_HANDED_CONF", handed},
                                   {"FRAGSHIM_TORCH_CONF", "max_split_size_mb:64"}};
  check_original(environment, "max_split_size_mb:64", "PYTORCH_CUDA_ALLOC_CONF");
}

TEST_CASE("cudaMallocAsync asked for by the user is the user's", "[config]") {
  MapEnvironment environment{{"PYTORCH_CUDA_ALLOC_CONF", handed}};
  check_original(environment, handed, "PYTORCH_CUDA_ALLOC_CONF");
  apply_hand_over(environment);
  check_original(environment, handed, "PYTORCH_CUDA_ALLOC_CONF");
  CHECK(load_settings(environment).backend == Backend::cuda_malloc_async);
}
