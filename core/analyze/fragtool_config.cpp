#include <iostream>
#include <memory>

#include "config/describe.hpp"
#include "config/settings.hpp"
#include "core/analyze/fragtool_commands.hpp"

namespace fragshim::fragtool {

namespace {

/// A line on stderr for every value that is wrong; the exit status that goes with it.
int tell_problems(const Settings& settings) {
  for (const Problem& problem : settings.problems) std::cerr << problem.line() << '\n';
  return settings.problems.empty() ? 0 : exit_usage;
}

int show_config(bool json) {
  const Settings settings = load_settings();
  std::cout << (json ? effective_json(settings) + "\n" : effective_text(settings));
  return tell_problems(settings);
}

}  // namespace

Command add_config(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  auto help_options = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("config", "The effective configuration, and where each value comes from");
  command->add_flag("--json", *json, "as one JSON object");
  command->add_flag("--options", *help_options, "every option there is, with what it takes");
  return [json, help_options] {
    if (!*help_options) return show_config(*json);
    std::cout << help_text();
    return 0;
  };
}

Command add_check(CLI::App& app) {
  app.add_subcommand("check", "Complains about every setting that is wrong; silent if none is");
  return [] { return tell_problems(load_settings()); };
}

}  // namespace fragshim::fragtool
