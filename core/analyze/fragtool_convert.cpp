#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "core/analyze/convert.hpp"
#include "core/analyze/fragtool_commands.hpp"
#include "core/analyze/fragtool_options.hpp"

namespace fragshim::fragtool {

namespace {

struct Arguments {
  std::string in;
  std::string out;
  std::optional<int> device;
};

int fail_writing(const std::string& path) {
  complain(path + ": " + std::strerror(errno));
  return exit_failed;
}

/// Writes beside the file that is wanted, and puts it in its place when it is whole.
int run(const Arguments& arguments) {
  const auto format = format_of(arguments.out);
  if (!format) {
    complain("'" + arguments.out + "': the name of the output must end in " +
             std::string(formats_allowed));
    return exit_usage;
  }
  const auto source = open_events(arguments.in, {arguments.device});
  const std::string part = arguments.out + ".part";
  std::ofstream out(part, std::ios::binary);
  if (!out) return fail_writing(part);
  std::uint64_t events = 0;
  try {
    events = convert(*source, *format, out);
  } catch (...) {
    std::remove(part.c_str());
    throw;
  }
  out.close();
  if (!out || std::rename(part.c_str(), arguments.out.c_str()) != 0) {
    const int status = fail_writing(arguments.out);
    std::remove(part.c_str());
    return status;
  }
  std::cerr << "fragrun: " << arguments.out << ": " << events << " events\n";
  return 0;
}

}  // namespace

Command add_convert(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("convert", "Writes a trace in another format");
  command->add_option("IN", arguments->in, "a CSV log, PyTorch snapshot or binary trace")
      ->required();
  command->add_option("OUT", arguments->out, "ends in " + std::string(formats_allowed))->required();
  add_device_option(command, &arguments->device);
  return [arguments] { return run(*arguments); };
}

}  // namespace fragshim::fragtool
