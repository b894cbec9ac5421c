#include "config/settings.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "config/option_table.hpp"
#include "config/parse_size.hpp"
#include "config/spelling.hpp"

namespace fragshim {
namespace {

constexpr std::string_view prefix = "FRAGSHIM_";
constexpr std::string_view default_trace = "fragshim-%h-%p.fstrace";
constexpr std::uint64_t longest_interval_ms = 86'400'000;

std::string_view fallback_of(std::string_view name) { return find_option(name)->fallback; }

/// "FRAGSHIM_LOG_INTERVAL_MS" as a flag: "--log-interval-ms".
std::string flag_name(std::string_view variable) {
  std::string flag = "--";
  for (const char c : variable.substr(prefix.size())) {
    flag += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  }
  return flag;
}

/// True where `list`, names separated by commas, holds `name`.
bool lists(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

class Loader {
 public:
  explicit Loader(const Environment& environment)
      : environment_(environment), flags_(environment.get("FRAGSHIM_FLAGS").value_or("")) {}

  Settings load() {
    settings_.log = fallback_of("FRAGSHIM_LOG");
    read_conf();
    for (const Option& option : option_table()) {
      if (option.place == OptionPlace::environment) read_variable(option);
    }
    for (const Option& option : option_table()) {
      if (find_conf_key(option.name)) show_conf_key(option);
    }
    find_unknown_variables();
    return std::move(settings_);
  }

 private:
  /// A FRAGSHIM_* variable's name, or the flag it was given by.
  std::string source_of(std::string_view variable) const {
    const bool own = variable.substr(0, prefix.size()) == prefix;
    if (own && lists(flags_, variable.substr(prefix.size()))) return flag_name(variable);
    return std::string(variable);
  }

  void read_conf() {
    const ConfSource source = original_conf(environment_);
    settings_.conf = source.text;
    settings_.conf_source = source.variable.empty() ? "default" : source_of(source.variable);
    conf_ = parse_conf(source.text, settings_.conf_source);
    settings_.allocation = conf_.allocation;
    settings_.backend = conf_.backend;
    settings_.host_side = conf_.host_side;
    settings_.problems = conf_.problems;
    if (conf_.backend == Backend::native) settings_.torch = Torch::native;
  }

  /// Takes one variable's value and adds the row that shows what is in force.
  void read_variable(const Option& option) {
    EffectiveOption row{std::string(option.name), std::string(option.fallback), "default"};
    if (option.kind == OptionKind::text) {  // FRAGSHIM_CONF, whatever variable stands for it
      row.value = settings_.conf;
      row.source = settings_.conf_source;
    } else if (option.name == "FRAGSHIM_TORCH" && settings_.torch == Torch::native) {
      row.value = "native";
      row.source = settings_.conf_source;
    }
    const auto given = environment_.get(row.name.c_str());
    const bool counts = given && (!given->empty() || option.kind == OptionKind::path);
    if (counts && option.kind != OptionKind::text) {
      if (const auto effective = take(option, *given)) {
        row.value = *effective;
        row.source = source_of(option.name);
      } else {
        report_bad_value(option, *given);
      }
    }
    settings_.effective.push_back(std::move(row));
  }

  /// Puts the value into the settings; the value in force as text, nothing where it is bad.
  std::optional<std::string> take(const Option& option, const std::string& given) {
    switch (option.kind) {
      case OptionKind::boolean:
        return take_boolean(option.name, given);
      case OptionKind::choice:
        return take_choice(option, given);
      case OptionKind::integer:
        return take_interval(given);
      case OptionKind::path:
        return take_path(option.name, given);
      default:
        return std::nullopt;
    }
  }

  std::optional<std::string> take_boolean(std::string_view name, const std::string& given) {
    const auto value = parse_boolean(given);
    if (!value) return std::nullopt;
    if (name == "FRAGSHIM_STRICT_FREE") settings_.strict_free = *value;
    if (name == "FRAGSHIM_QUIET") settings_.quiet = *value;
    if (name == "FRAGSHIM_VERBOSE") settings_.verbose = *value;
    return *value ? "on" : "off";
  }

  // The enumerators stand in the order of the choices in the table.
  std::optional<std::string> take_choice(const Option& option, const std::string& given) {
    const auto index = choice_index(option.allowed, given);
    if (!index) return std::nullopt;
    if (option.name == "FRAGSHIM_MODE") settings_.mode = static_cast<Mode>(*index);
    if (option.name == "FRAGSHIM_TORCH") settings_.torch = static_cast<Torch>(*index);
    if (option.name == "FRAGSHIM_IPC") settings_.ipc = static_cast<Ipc>(*index);
    return given;
  }

  std::optional<std::string> take_interval(const std::string& given) {
    const auto value = parse_integer(given);
    if (!value || *value < 1 || *value > longest_interval_ms) return std::nullopt;
    settings_.log_interval_ms = static_cast<std::uint32_t>(*value);
    return std::to_string(*value);
  }

  std::optional<std::string> take_path(std::string_view name, const std::string& given) {
    const bool is_log = name == "FRAGSHIM_LOG";
    const auto word = given.empty() ? std::optional(false) : parse_boolean(given);
    std::string pattern = given;
    if (word) pattern = !*word ? "" : is_log ? fallback_of(name) : default_trace;
    (is_log ? settings_.log : settings_.trace) = pattern;
    return pattern.empty() ? "off" : pattern;
  }

  void report_bad_value(const Option& option, const std::string& given) {
    settings_.problems.push_back({source_of(option.name),
                                  {},
                                  given,
                                  std::string(option.allowed),
                                  std::string(nearest_choice(option, given))});
  }

  void show_conf_key(const Option& option) {
    EffectiveOption row{std::string(option.name), std::string(option.fallback), "default"};
    if (option.name == "max_non_split_rounding_mb") {  // its default follows another key
      row.value = std::to_string(conf_.allocation.large_segment_size >> 20);
    }
    for (const ConfSetting& setting : conf_.settings) {
      if (setting.key != option.name) continue;
      row.value = setting.value;
      row.source = settings_.conf_source;
    }
    settings_.effective.push_back(std::move(row));
  }

  void find_unknown_variables() {
    std::vector<std::string_view> known;
    for (const Option& option : option_table()) {
      if (option.place != OptionPlace::environment) continue;
      known.push_back(option.name.substr(prefix.size()));
    }
    auto names = environment_.names();
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (name.compare(0, prefix.size(), prefix) != 0 || find_option(name)) continue;
      const auto near = nearest_spelling(std::string_view(name).substr(prefix.size()), known);
      Problem problem{name, {}, {}, {}, {}, /*unknown=*/true};
      if (!near.empty()) problem.suggestion = std::string(prefix) + std::string(near);
      settings_.problems.push_back(std::move(problem));
    }
  }

  const Environment& environment_;
  const std::string flags_;
  ConfString conf_;
  Settings settings_;
};

}  // namespace

Settings load_settings(const Environment& environment) { return Loader(environment).load(); }

Settings load_settings() { return load_settings(ProcessEnvironment()); }

}  // namespace fragshim
