#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/analyze/fragtool_commands.hpp"
#include "core/analyze/fragtool_options.hpp"
#include "core/analyze/fragtool_progress.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/replay_output.hpp"

namespace fragshim::fragtool {

namespace {

struct Arguments {
  std::vector<std::string> traces;
  ReplayArguments replay;
  bool json = false;
};

ReplayedTrace replay_file(const std::string& path, const Arguments& arguments,
                          ReplayOptions options) {
  Progress progress(path, "events");
  options.progress = std::ref(progress);
  const auto source = open_events(path, {arguments.replay.device});
  ReplayResult result = replay(*source, options);
  return {path,
          arguments.replay.conf,
          options.policy,
          options.capacity,
          std::move(result),
          source->recorded_state()};
}

int run(const Arguments& arguments) {
  ReplayOptions options;
  if (!read_options(arguments.replay, &options)) return exit_usage;
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
  add_replay_options(command, &arguments->replay);
  return [arguments] { return run(*arguments); };
}

}  // namespace fragshim::fragtool
