#include "shim/torch.hpp"

#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/conf_string.hpp"
#include "config/environment.hpp"
#include "config/torch_conf.hpp"

namespace fragshim {
namespace {

constexpr const char* torch_variables[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
constexpr const char* handed_variable = "FRAGSHIM_HANDED_CONF";
constexpr const char* original_variable = "FRAGSHIM_TORCH_CONF";
constexpr const char* source_variable = "FRAGSHIM_TORCH_CONF_SOURCE";
constexpr std::string_view backend = "backend:cudaMallocAsync";

constinit bool handed_over = false;

bool is(const char* variable, std::string_view value) {
  const char* const text = std::getenv(variable);
  return text && text == value;
}

/// True where both of PyTorch's variables hold what was handed.
bool holds_handed() {
  const char* const handed = std::getenv(handed_variable);
  return handed && is(torch_variables[0], handed) && is(torch_variables[1], handed);
}

/// True where nothing is set that could change what an earlier process of ours has decided.
bool decided_before() {
  for (const char* variable : {"FRAGSHIM_MODE", "FRAGSHIM_TORCH", "FRAGSHIM_CONF"}) {
    if (std::getenv(variable)) return false;
  }
  return holds_handed();
}

bool torch_is_ours(const ConfString& conf) {
  if (is("FRAGSHIM_MODE", "off") || is("FRAGSHIM_MODE", "observe")) return false;
  if (is("FRAGSHIM_TORCH", "native")) return false;
  return is("FRAGSHIM_TORCH", "async") || conf.backend != Backend::native;
}

/// The backend, and the user's settings for host memory, which PyTorch goes on managing.
std::string text_for_torch(const ConfString& conf) {
  std::string text(backend);
  for (const std::string& key : conf.host_side) {
    for (const ConfSetting& setting : conf.settings) {
      if (setting.key == key) text.append(",").append(key).append(":").append(setting.raw);
    }
  }
  return text;
}

/// Undoes hand_over where a parent process did it and its text still stands.
std::vector<VariableChange> take_back(const Environment& environment) {
  std::vector<VariableChange> changes;
  const auto handed = environment.get(handed_variable);
  if (!handed) return changes;
  const auto original = environment.get(original_variable);
  const std::string source = environment.get(source_variable).value_or(torch_variables[0]);
  for (const char* variable : torch_variables) {
    if (environment.get(variable) != handed) continue;
    changes.push_back({variable, source == variable ? original : std::nullopt});
  }
  for (const char* variable : {handed_variable, original_variable, source_variable}) {
    changes.push_back({variable, std::nullopt});
  }
  return changes;
}

void apply(const VariableChange& change) {
  if (change.value) {
    setenv(change.name.c_str(), change.value->c_str(), 1);
  } else {
    unsetenv(change.name.c_str());
  }
}

}  // namespace

void hand_over_to_torch() noexcept {
  if (decided_before()) {
    handed_over = true;
    return;
  }
  try {
    const ProcessEnvironment environment;
    const ConfString conf = parse_conf(original_conf(environment).text);
    const bool ours = torch_is_ours(conf);
    const auto changes =
        ours ? hand_over(environment, text_for_torch(conf)) : take_back(environment);
    for (const VariableChange& change : changes) apply(change);
    handed_over = ours;
  } catch (const std::exception&) {  // no host memory: PyTorch keeps what it has
  }
}

bool overridden_after_start() noexcept { return handed_over && !holds_handed(); }

}  // namespace fragshim
