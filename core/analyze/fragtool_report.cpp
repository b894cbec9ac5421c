#include <algorithm>
#include <charconv>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/analyze/fragtool_commands.hpp"
#include "core/analyze/input_error.hpp"
#include "core/analyze/report.hpp"

namespace fragshim::fragtool {

namespace {

struct Arguments {
  std::vector<std::string> logs;
  bool json = false;
};

/// Ranks in the order of their numbers; what has none comes last, in the order given.
long rank_order(const ProcessReport& process) {
  long rank = 0;
  const char* end = process.rank.data() + process.rank.size();
  const auto [stop, error] = std::from_chars(process.rank.data(), end, rank);
  return error == std::errc() && stop == end ? rank : std::numeric_limits<long>::max();
}

int run(const Arguments& arguments) {
  std::vector<ProcessReport> processes;
  int status = 0;
  for (const std::string& path : arguments.logs) {
    try {
      processes.push_back(read_log(ByteStream::open(path)));
      if (processes.back().records == 0) {
        complain(path + ": no record of fragshim's log in it");
        processes.pop_back();
        status = exit_failed;
      }
    } catch (const InputError& error) {
      complain(error.what());
      status = exit_failed;
    }
  }
  std::stable_sort(processes.begin(), processes.end(),
                   [](const auto& a, const auto& b) { return rank_order(a) < rank_order(b); });
  if (arguments.json) {
    using nlohmann::ordered_json;
    std::cout << report_json(processes).dump(2, ' ', false, ordered_json::error_handler_t::replace)
              << '\n';
  } else {
    std::cout << report_text(processes);
  }
  return status;
}

}  // namespace

Command add_report(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("report", "What the logs of a run say");
  command->add_option("LOG", arguments->logs, "logs, one of each process; plain or packed")
      ->required();
  command->add_flag("--json", arguments->json, "as one JSON object");
  return [arguments] { return run(*arguments); };
}

}  // namespace fragshim::fragtool
