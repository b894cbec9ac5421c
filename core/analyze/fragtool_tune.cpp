#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/analyze/fragtool_commands.hpp"
#include "core/analyze/fragtool_options.hpp"
#include "core/analyze/fragtool_progress.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/tune_output.hpp"

namespace fragshim::fragtool {

namespace {

struct Arguments {
  std::vector<std::string> traces;
  std::string capacity;
  std::optional<int> device;
  bool json = false;
};

int run(const Arguments& arguments) {
  TuneOptions options;
  if (!read_capacity(arguments.capacity, &options.capacity)) return exit_usage;
  std::vector<TuneTrace> traces;
  for (const std::string& path : arguments.traces) {
    traces.push_back({path, StoredSteps(*open_events(path, {arguments.device}))});
    if (traces.back().steps.requested_peak() != 0) continue;
    throw InputError(path + ": nothing is allocated in it");
  }
  options.threads = std::max(std::thread::hardware_concurrency(), 1u);
  Progress progress("tune", "replays");
  options.progress = std::ref(progress);
  const Tuning tuning = tune(traces, options);
  if (arguments.json) {
    using nlohmann::ordered_json;
    std::cout
        << tune_json(traces, tuning).dump(2, ' ', false, ordered_json::error_handler_t::replace)
        << '\n';
  } else {
    std::cout << tune_text(traces, tuning);
  }
  return 0;
}

}  // namespace

Command add_tune(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("tune", "The best settings for recorded traces, found by replaying them");
  command->add_option("TRACE", arguments->traces, "traces of one or several runs or ranks")
      ->required();
  add_capacity_option(command, &arguments->capacity);
  command->add_flag("--json", arguments->json, "as one JSON object, with every setting tried");
  add_device_option(command, &arguments->device);
  return [arguments] { return run(*arguments); };
}

}  // namespace fragshim::fragtool
