#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "config/conf_string.hpp"
#include "config/parse_size.hpp"
#include "core/analyze/fragtool_commands.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/replay_output.hpp"
#include "core/analyze/size_text.hpp"

namespace fragshim::fragtool {

namespace {

struct Arguments {
  std::vector<std::string> traces;
  std::string conf;
  std::string policy;
  std::string capacity;
  bool json = false;
};

/// Says on a terminal how far a replay has come, once it has taken a second.
class Progress {
 public:
  explicit Progress(std::string trace) : trace_(std::move(trace)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::cerr << "\r\033[K";
  }

  void operator()(std::uint64_t events) {
    const auto now = Clock::now();
    if (!terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    shown_ = true;
    std::cerr << "\r\033[K" << trace_ << ": " << events << " events" << std::flush;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string trace_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
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
  if (arguments.capacity.empty()) return conf.problems.empty();
  const auto capacity = parse_size(arguments.capacity);
  if (!capacity || *capacity == 0) {
    complain("--capacity: bad value '" + arguments.capacity +
             "'; allowed: " + std::string(size_allowed));
    return false;
  }
  options->capacity = *capacity;
  return conf.problems.empty();
}

ReplayedTrace replay_file(const std::string& path, const std::string& conf, ReplayOptions options) {
  Progress progress(path);
  options.progress = std::ref(progress);
  const auto source = open_events(path);
  return {path, conf, options.policy, options.capacity, replay(*source, options)};
}

int run(const Arguments& arguments) {
  ReplayOptions options;
  if (!read_options(arguments, &options)) return exit_usage;
  std::vector<ReplayedTrace> replayed;
  int status = 0;
  for (const std::string& path : arguments.traces) {
    try {
      replayed.push_back(replay_file(path, arguments.conf, options));
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
  command->add_option("TRACE", arguments->traces, "CSV logs or binary traces, plain or packed")
      ->required();
  command->add_flag("--json", arguments->json, "one JSON object a trace, in place of the table");
  command
      ->add_option("--policy", arguments->policy,
                   "native: PyTorch's allocator (default); stitch: fragshim's")
      ->check(CLI::IsMember({"native", "stitch"}));
  command->add_option("--conf", arguments->conf, "allocator settings, in PyTorch's grammar");
  command->add_option("--capacity", arguments->capacity,
                      "what the process may take in all: " + std::string(size_allowed));
  return [arguments] { return run(*arguments); };
}

}  // namespace fragshim::fragtool
