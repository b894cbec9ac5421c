#include "config/describe.hpp"

#include <algorithm>
#include <string_view>

#include "config/json.hpp"
#include "config/option_table.hpp"

namespace fragshim {
namespace {

std::string shown_default(const Option& option) {
  return option.fallback.empty() ? "none" : std::string(option.fallback);
}

void append_help(std::string& out, OptionPlace place) {
  for (const Option& option : option_table()) {
    if (option.place != place) continue;
    out += "  ";
    out += option.name;
    out += "\n      ";
    out += option.help;
    out += ".\n      Allowed: ";
    out += option.allowed;
    out += ". Default: " + shown_default(option) + ".\n";
  }
}

/// `text` with what would end a table's cell escaped.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void append_table(std::string& out, std::string_view title, OptionPlace place) {
  out += "| ";
  out += title;
  out += " | Meaning | Allowed | Default |\n| --- | --- | --- | --- |\n";
  for (const Option& option : option_table()) {
    if (option.place != place) continue;
    out += "| `" + cell(option.name) + "` | " + cell(option.help) + " | " + cell(option.allowed) +
           " | " + (option.fallback.empty() ? "none" : "`" + cell(option.fallback) + "`") + " |\n";
  }
}

}  // namespace

std::string help_text() {
  std::string out =
      "Variables (fragrun has a flag for each: FRAGSHIM_LOG_INTERVAL_MS is --log-interval-ms):\n";
  append_help(out, OptionPlace::environment);
  out += "\nKeys of the conf string, PyTorch's and two of fragshim's own (policy, ";
  out += "memory_limit_mb):\n";
  append_help(out, OptionPlace::conf);
  out += "\nKeys of PyTorch that are accepted and do not concern fragshim:\n";
  append_help(out, OptionPlace::host_conf);
  return out;
}

std::string markdown_table() {
  std::string out;
  append_table(out, "Variable", OptionPlace::environment);
  out += '\n';
  append_table(out, "Key of the conf string", OptionPlace::conf);
  out += "\nAccepted, since PyTorch knows them, but without effect on fragshim:";
  std::string_view separator = " ";
  for (const Option& option : option_table()) {
    if (option.place != OptionPlace::host_conf) continue;
    out += separator;
    out += "`" + std::string(option.name) + "`";
    separator = ", ";
  }
  out += ".\n";
  return out;
}

std::string effective_text(const Settings& settings) {
  std::size_t name_width = 0, value_width = 0;
  for (const EffectiveOption& row : settings.effective) {
    name_width = std::max(name_width, row.name.size());
    value_width = std::max(value_width, row.value.size());
  }
  value_width = std::min<std::size_t>(value_width, 40);  // one long value spoils no column
  std::string out;
  const auto append_padded = [&](const std::string& text, std::size_t width) {
    out += text;
    out.append(text.size() < width ? width - text.size() : 0, ' ');
    out += "  ";
  };
  for (const EffectiveOption& row : settings.effective) {
    append_padded(row.name, name_width);
    append_padded(printable(row.value), value_width);
    out += row.source + "\n";
  }
  return out;
}

std::string effective_json(const Settings& settings) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  for (const EffectiveOption& row : settings.effective) {
    json.key(row.name).begin_object();
    json.field("value", row.value).field("source", row.source);
    json.end_object();
  }
  json.end_object();
  return out;
}

}  // namespace fragshim
