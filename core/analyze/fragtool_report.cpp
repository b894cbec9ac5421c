#include <algorithm>
#include <charconv>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/analyze/diagnosis.hpp"
#include "core/analyze/fragtool_commands.hpp"
#include "core/analyze/fragtool_options.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/report.hpp"

namespace fragshim::fragtool {

namespace {

struct Arguments {
  std::vector<std::string> files;
  ReplayArguments replay;
  bool json = false;
};

/// What the files tell: logs of processes, and traces.
struct Findings {
  std::vector<ProcessReport> processes;
  std::vector<Diagnosis> diagnoses;
};

/// Ranks in the order of their numbers; what has none comes last, in the order given.
long rank_order(const ProcessReport& process) {
  long rank = 0;
  const char* end = process.rank.data() + process.rank.size();
  const auto [stop, error] = std::from_chars(process.rank.data(), end, rank);
  return error == std::errc() && stop == end ? rank : std::numeric_limits<long>::max();
}

/// Logs are lines of JSON; no trace begins like that.
bool is_log(ByteStream* input) {
  const std::string_view head = input->peek(64).substr(0, 64);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos || head[first] == '{';
}

/// Where requests fail, the settings that would have avoided it are looked for, too.
Diagnosis diagnose_file(const std::string& path, const Arguments& arguments,
                        const ReplayOptions& options) {
  const SourceOptions part{arguments.replay.device};
  Diagnosis diagnosis = diagnose(path, *open_events(path, part), options);
  diagnosis.conf = arguments.replay.conf;
  if (diagnosis.failure_classes.empty()) return diagnosis;
  std::vector<TuneTrace> traces;
  traces.push_back({path, StoredSteps(*open_events(path, part))});
  TuneOptions tune_options;
  tune_options.capacity = options.capacity;
  tune_options.threads = std::max(std::thread::hardware_concurrency(), 1u);
  diagnosis.remedy = tune(traces, tune_options);
  return diagnosis;
}

void read_file(const std::string& path, const Arguments& arguments, const ReplayOptions& options,
               Findings* findings) {
  ByteStream input = ByteStream::open(path);
  if (!is_log(&input)) {
    findings->diagnoses.push_back(diagnose_file(path, arguments, options));
    return;
  }
  ProcessReport process = read_log(std::move(input));
  if (process.records == 0) throw InputError(path + ": no record of fragshim's log in it");
  findings->processes.push_back(std::move(process));
}

void write_json(const Findings& findings) {
  using nlohmann::ordered_json;
  ordered_json json = report_json(findings.processes);
  for (const Diagnosis& one : findings.diagnoses) json["traces"].push_back(diagnosis_json(one));
  std::cout << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

void write_text(const Findings& findings) {
  std::cout << report_text(findings.processes);
  bool first = findings.processes.empty();
  for (const Diagnosis& one : findings.diagnoses) {
    std::cout << (first ? "" : "\n") << diagnosis_text(one);
    first = false;
  }
}

int run(const Arguments& arguments) {
  ReplayOptions options;
  if (!read_options(arguments.replay, &options)) return exit_usage;
  Findings findings;
  int status = 0;
  for (const std::string& path : arguments.files) {
    try {
      read_file(path, arguments, options, &findings);
    } catch (const InputError& error) {
      complain(error.what());
      status = exit_failed;
    }
  }
  std::stable_sort(findings.processes.begin(), findings.processes.end(),
                   [](const auto& a, const auto& b) { return rank_order(a) < rank_order(b); });
  if (arguments.json) {
    write_json(findings);
  } else {
    write_text(findings);
  }
  return status;
}

}  // namespace

Command add_report(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("report", "What the logs of a run say, or its traces");
  command->add_option("FILE", arguments->files, "logs, one of each process, or traces")->required();
  command->add_flag("--json", arguments->json, "as one JSON object");
  add_replay_options(command, &arguments->replay);
  return [arguments] { return run(*arguments); };
}

}  // namespace fragshim::fragtool
