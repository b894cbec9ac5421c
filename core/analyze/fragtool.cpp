// fragtool: what `fragrun` runs to check settings and to read what was recorded.
#include <iostream>

#include "core/analyze/fragtool_commands.hpp"

namespace fragshim::fragtool {

void complain(const std::string& what) { std::cerr << "fragrun: " << what << '\n'; }

namespace {

int run(int count, char** arguments) {
  CLI::App app("Reads what fragshim recorded, and replays it", "fragrun");
  app.set_version_flag("-V,--version", "fragshim " FRAGSHIM_VERSION);
  app.require_subcommand(1);
  struct Entry {
    const char* name;
    Command run;
  };
  const Entry entries[] = {{"replay", add_replay(app)},   {"tune", add_tune(app)},
                           {"convert", add_convert(app)}, {"report", add_report(app)},
                           {"config", add_config(app)},   {"check", add_check(app)}};
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    std::string line = error.what();
    complain(line.substr(0, line.find('\n')));
    return exit_usage;
  }
  for (const Entry& entry : entries) {
    if (app.got_subcommand(entry.name)) return entry.run();
  }
  return exit_usage;
}

}  // namespace
}  // namespace fragshim::fragtool

int main(int count, char** arguments) {
  using namespace fragshim::fragtool;
  try {
    const int status = run(count, arguments);
    std::cout.flush();
    if (std::cout.good()) return status;
    complain("standard output cannot be written");
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return exit_failed;
}
