#include "core/analyze/fragtool_options.hpp"

#include <iostream>

#include "config/conf_string.hpp"
#include "config/parse_size.hpp"
#include "core/analyze/fragtool_commands.hpp"

namespace fragshim::fragtool {

namespace {

/// The policy: the flag's, else the conf string's, else PyTorch's.
PolicyKind chosen_policy(const ReplayArguments& arguments, const AllocationConfig& config) {
  if (arguments.policy == "stitch") return PolicyKind::stitch;
  if (arguments.policy.empty() && config.policy != PolicyKind::automatic) return config.policy;
  return PolicyKind::native;
}

}  // namespace

void add_capacity_option(CLI::App* command, std::string* capacity) {
  command->add_option("--capacity", *capacity,
                      "what the process may take in all: " + std::string(size_allowed));
}

void add_device_option(CLI::App* command, std::optional<int>* device) {
  command->add_option("--device", *device,
                      "whose events of a snapshot are taken (default: the busiest GPU's)");
}

void add_replay_options(CLI::App* command, ReplayArguments* arguments) {
  command
      ->add_option("--policy", arguments->policy,
                   "native: PyTorch's allocator (default); stitch: fragshim's")
      ->check(CLI::IsMember({"native", "stitch"}));
  command->add_option("--conf", arguments->conf, "allocator settings, in PyTorch's grammar");
  add_capacity_option(command, &arguments->capacity);
  add_device_option(command, &arguments->device);
}

bool read_capacity(const std::string& text, Bytes* capacity) {
  *capacity = unlimited;
  if (text.empty()) return true;
  const auto size = parse_size(text);
  if (size && *size != 0) {
    *capacity = *size;
    return true;
  }
  complain("--capacity: bad value '" + text + "'; allowed: " + std::string(size_allowed));
  return false;
}

bool read_options(const ReplayArguments& arguments, ReplayOptions* options) {
  const ConfString conf = parse_conf(arguments.conf, "--conf");
  for (const Problem& problem : conf.problems) std::cerr << problem.line() << '\n';
  options->config = conf.allocation;
  options->policy = chosen_policy(arguments, conf.allocation);
  return read_capacity(arguments.capacity, &options->capacity) && conf.problems.empty();
}

}  // namespace fragshim::fragtool
