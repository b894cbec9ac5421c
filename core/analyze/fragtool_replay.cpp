#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/conf_string.hpp"
#include "core/analyze/fragtool_commands.hpp"
#include "core/analyze/fragtool_progress.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/replay_output.hpp"

namespace fragshim::fragtool {

namespace {

struct Arguments {
  std::vector<std::string> traces;
  std::string conf;
  std::string policy;
  std::string capacity;
  std::optional<int> device;
  bool json = false;
};

/// The policy: the flag's, else the conf string's, else PyTorch's.
PolicyKind chosen_policy(const Arguments& arguments, const AllocationConfig& config) {
  if (arguments.policy == "stitch") return PolicyKind::stitch;
  if (arguments.policy.empty() && config.policy != PolicyKind::automatic) return config.policy;
  return PolicyKind::native;
}

/// False with a line on stderr for every value that is wrong.
bool read_options(const Arguments& arguments, ReplayOptions* options) {
  const ConfString conf = parse_conf(arguments.conf, "--conf");
  for (const Problem& problem : conf.problems) std::cerr << problem.line() << '\n';
  options->config = conf.allocation;
  options->policy = chosen_policy(arguments, conf.allocation);
  return read_capacity(arguments.capacity, &options->capacity) && conf.problems.empty();
}

ReplayedTrace replay_file(const std::string& path, const Arguments& arguments,
                          ReplayOptions options) {
  Progress progress(path, "events");
  options.progress = std::ref(progress);
  const auto source = open_events(path, {arguments.device});
  ReplayResult result = replay(*source, options);
  return {path,
          arguments.conf,
          options.policy,
          options.capacity,
          std::move(result),
          source->recorded_state()};
}

int run(const Arguments& arguments) {
  ReplayOptions options;
  if (!read_options(arguments, &options)) return exit_usage;
  std::vector<ReplayedTrace> replayed;
  int status = 0;
  for (const std::string& path : arguments.traces) {
    try {
      replayed.push_back(replay_file(path, arguments, options));
      if (arguments.json) std::cout << replay_json(replayed.back()) << std::endl;
    } catch (const InputError& error) {
      complain(error.what());
      status = exit_failed;
    }
  }
  if (!arguments.json && !replayed.empty()) std::cout << replay_text(replayed);
  return status;
}

}  // namespace

Command add_replay(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("replay", "What an allocator would have done with recorded traces");
  command->add_option("TRACE", arguments->traces, "CSV logs, PyTorch snapshots or binary traces")
      ->required();
  command->add_flag("--json", arguments->json, "one JSON object a trace, in place of the table");
  command
      ->add_option("--policy", arguments->policy,
                   "native: PyTorch's allocator (default); stitch: fragshim's")
      ->check(CLI::IsMember({"native", "stitch"}));
  command->add_option("--conf", arguments->conf, "allocator settings, in PyTorch's grammar");
  command->add_option("--capacity", arguments->capacity, capacity_help());
  add_device_option(command, &arguments->device);
  return [arguments] { return run(*arguments); };
}

}  // namespace fragshim::fragtool
