// The one table of options: parser, help, README, `fragrun config` and the log are made from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fragshim {

enum class OptionPlace : std::uint8_t {
  environment,  // a FRAGSHIM_* variable, with a fragrun flag of the same name
  conf,         // a key of the conf string
  host_conf,    // a key PyTorch knows that does not concern the shim: accepted, without effect
  internal,     // a variable the shim and fragrun set for their children; in no help text
};

enum class OptionKind : std::uint8_t {
  size_mb,    // whole megabytes (MiB), read as PyTorch reads them
  fraction,   // a decimal number between 0 and 1
  boolean,    // environment: 1/0, on/off, true/false, yes/no; conf: True/False
  choice,     // one of `allowed`, which separates them by " | "
  path,       // a file name pattern
  text,       // free text
  integer,    // a whole number
  divisions,  // roundup_power2_divisions: a number or a bracket list
};

struct Option {
  std::string_view name;
  OptionPlace place;
  OptionKind kind;
  std::string_view fallback;  // the default, as a user would write it
  std::string_view allowed;   // one phrase
  std::string_view help;      // one line
};

/// Every option there is, in the order of help texts.
std::span<const Option> option_table();

/// The option of that exact name, of whatever place; null where there is none.
const Option* find_option(std::string_view name);
/// The same among the keys of the conf string only.
const Option* find_conf_key(std::string_view name);

/// The choices of a choice's `allowed`, called one by one with a std::string_view.
template <typename Function>
void for_each_choice(std::string_view allowed, Function&& function) {
  constexpr std::string_view separator = " | ";
  for (;;) {
    const auto end = allowed.find(separator);
    function(allowed.substr(0, end));
    if (end == std::string_view::npos) return;
    allowed.remove_prefix(end + separator.size());
  }
}

/// Which of the choices `value` is, counted from 0; nothing where it is none of them.
std::optional<std::size_t> choice_index(std::string_view allowed, std::string_view value);

}  // namespace fragshim
