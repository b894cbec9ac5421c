#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/describe.hpp"
#include "config/option_table.hpp"
#include "config/parse_size.hpp"
#include "config/settings.hpp"
#include "config/spelling.hpp"
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

/// The flag of a variable: --log-interval-ms for FRAGSHIM_LOG_INTERVAL_MS.
std::string flag_of(std::string_view variable) {
  std::string flag = "--";
  for (const char c : variable.substr(std::string_view("FRAGSHIM_").size())) {
    flag += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  }
  return flag;
}

int tell_unknown_option(const std::string& given) {
  std::vector<std::string> flags;
  for (const Option& option : option_table()) {
    if (option.place == OptionPlace::environment) flags.push_back(flag_of(option.name));
  }
  for (const char* flag : {"--simulate", "--help", "--version"}) flags.emplace_back(flag);
  const std::vector<std::string_view> names(flags.begin(), flags.end());
  const std::string_view likely = nearest_spelling(given, names);
  complain("unknown option '" + given + "'" +
           (likely.empty() ? "; fragrun --help lists them"
                           : "; did you mean '" + std::string(likely) + "'?"));
  return exit_usage;
}

int check_simulated_size(const std::string& size) {
  const auto bytes = parse_size(size);
  if (bytes && *bytes != 0) return 0;
  complain("--simulate: bad value '" + size + "'; allowed: " + std::string(size_allowed));
  return exit_usage;
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
  struct Arguments {
    std::string unknown_option;
    std::string simulate;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("check", "Complains about every setting that is wrong; silent if none is");
  const CLI::Option* unknown = command->add_option("--unknown-option", arguments->unknown_option,
                                                   "says which option of fragrun was likely meant");
  const CLI::Option* simulate = command->add_option("--simulate", arguments->simulate,
                                                    "checks a size for the stand-in driver");
  return [=] {
    if (unknown->count() != 0) return tell_unknown_option(arguments->unknown_option);
    if (simulate->count() != 0) return check_simulated_size(arguments->simulate);
    return tell_problems(load_settings());
  };
}

}  // namespace fragshim::fragtool
