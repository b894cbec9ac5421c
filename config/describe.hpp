// What the option table and the settings look like to people and to programs.
#pragma once

#include <string>

#include "config/settings.hpp"

namespace fragshim {

/// The options as plain text, for `fragrun --help` and `fragrun config --help`.
std::string help_text();

/// The options as the README's table.
std::string markdown_table();

/// One line an option: name, value, source, in columns.
std::string effective_text(const Settings& settings);

/// A JSON object without line breaks: {"NAME":{"value":"…","source":"…"},…}.
std::string effective_json(const Settings& settings);

}  // namespace fragshim
