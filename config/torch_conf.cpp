#include "config/torch_conf.hpp"

namespace fragshim {
namespace {

// In PyTorch's order of precedence.
constexpr const char* torch_variables[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

// The user's conf string among PyTorch's variables.
ConfSource torch_conf(const Environment& environment) {
  const auto handed = environment.get("FRAGSHIM_HANDED_CONF");
  const auto original = environment.get("FRAGSHIM_TORCH_CONF");
  const std::string source =
      environment.get("FRAGSHIM_TORCH_CONF_SOURCE").value_or(torch_variables[0]);
  for (const char* variable : torch_variables) {
    const auto text = environment.get(variable);
    if (!text) continue;
    if (text != handed) return {*text, variable};
    if (original && source == variable) return {*original, variable};
  }
  return {};
}

}  // namespace

ConfSource original_conf(const Environment& environment) {
  if (const auto own = environment.get("FRAGSHIM_CONF")) return {*own, "FRAGSHIM_CONF"};
  return torch_conf(environment);
}

std::vector<VariableChange> hand_over(const Environment& environment, std::string_view handed) {
  const ConfSource original = torch_conf(environment);
  std::vector<VariableChange> changes;
  for (const char* variable : torch_variables) changes.push_back({variable, std::string(handed)});
  changes.push_back({"FRAGSHIM_HANDED_CONF", std::string(handed)});
  const bool any = !original.variable.empty();
  const auto when_any = [&](const std::string& value) {
    return any ? std::optional<std::string>(value) : std::nullopt;
  };
  changes.push_back({"FRAGSHIM_TORCH_CONF", when_any(original.text)});
  changes.push_back({"FRAGSHIM_TORCH_CONF_SOURCE", when_any(original.variable)});
  return changes;
}

}  // namespace fragshim
