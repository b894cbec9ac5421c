// The commands of fragtool. Each adds itself to the command line and runs when it was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace fragshim::fragtool {

inline constexpr int exit_failed = 1;  // something that was asked for could not be done
inline constexpr int exit_usage = 2;   // the command line or a setting is wrong

/// Does what was asked for; returns the exit status.
using Command = std::function<int()>;

Command add_replay(CLI::App& app);
Command add_tune(CLI::App& app);
Command add_convert(CLI::App& app);
Command add_report(CLI::App& app);
Command add_config(CLI::App& app);
Command add_check(CLI::App& app);

/// A line on stderr, under the name that people type.
void complain(const std::string& what);

}  // namespace fragshim::fragtool
