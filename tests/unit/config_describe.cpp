// All that is made from the option table shows all of it.
#include "config/describe.hpp"

#include <fstream>
#include <set>
#include <sstream>

#include "config/option_table.hpp"
#include "tests/catch.hpp"
#include "tests/unit/config_map_environment.hpp"

using namespace fragshim;

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The README between its two markers; empty where there is no README.
std::string table_in_readme() {
  std::ifstream file(FRAGSHIM_TEST_DATA "/../../README.md");
  if (!file) return {};
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  const std::string begin = "<!-- options -->\n", end = "<!-- /options -->";
  const auto from = text.find(begin);
  const auto to = text.find(end);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  return text.substr(from + begin.size(), to - from - begin.size());
}

}  // namespace

TEST_CASE("the option table is sound", "[config]") {
  std::set<std::string_view> names;
  for (const Option& option : option_table()) {
    INFO(option.name);
    CHECK(names.insert(option.name).second);
    CHECK_FALSE(option.help.empty());
    CHECK_FALSE(option.allowed.empty());
    CHECK_FALSE(contains(option.help, "\n"));
    CHECK(find_option(option.name) == &option);
    const bool variable =
        option.place == OptionPlace::environment || option.place == OptionPlace::internal;
    CHECK(variable == (option.name.substr(0, 9) == "FRAGSHIM_"));
    CHECK((find_conf_key(option.name) == nullptr) == variable);
  }
  CHECK(find_option("max_split") == nullptr);
}

TEST_CASE("every option is in the help, the README's table and the effective output", "[config]") {
  const Settings settings = load_settings(MapEnvironment{});
  const std::string help = help_text(), markdown = markdown_table();
  const std::string text = effective_text(settings), json = effective_json(settings);
  std::size_t shown = 0;
  for (const Option& option : option_table()) {
    INFO(option.name);
    const bool visible = option.place != OptionPlace::internal;
    const std::string name(option.name);
    CHECK(contains(help, "  " + name + "\n") == visible);
    CHECK(contains(markdown, "`" + name + "`") == visible);
    CHECK(contains("\n" + text, "\n" + name + " ") == visible);
    CHECK(contains(json, "\"" + name + "\":{\"value\":") == visible);
    if (!visible) continue;
    ++shown;
    CHECK(contains(help, option.help));
    CHECK(contains(help, "Allowed: " + std::string(option.allowed) + "."));
  }
  CHECK(settings.effective.size() == shown);
}

TEST_CASE("every default, given, is what is in force", "[config]") {
  for (const Option& option : option_table()) {
    INFO(option.name);
    const std::string name(option.name), value(option.fallback);
    // Words that say there is no value, which nobody can give.
    if (value == "unlimited" || value == "unset") continue;
    // Off by default; given, they have to be something else.
    if (name == "garbage_collection_threshold" || name == "roundup_power2_divisions") continue;
    if (option.place == OptionPlace::internal) continue;
    const bool variable = option.place == OptionPlace::environment;
    const Settings settings =
        load_settings(variable ? MapEnvironment{{name, value}}
                               : MapEnvironment{{"FRAGSHIM_CONF", name + ":" + value}});
    CHECK(settings.problems.empty());
    for (const EffectiveOption& row : settings.effective) {
      if (row.name == name) CHECK(row.value == value);
    }
  }
}

TEST_CASE("the README's table is the option table", "[config]") {
  const std::string table = table_in_readme();
  if (table.empty()) return;
  CHECK(table == markdown_table());
}

TEST_CASE("the README's table is well formed", "[config]") {
  std::istringstream lines(markdown_table());
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '|') continue;
    INFO(line);
    int cells = -1;
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '|' && (at == 0 || line[at - 1] != '\\')) ++cells;
    }
    CHECK(cells == 4);
    ++rows;
  }
  CHECK(rows > 20);
}

TEST_CASE("the effective configuration as text", "[config]") {
  const std::string text = effective_text(
      load_settings(MapEnvironment{{"FRAGSHIM_CONF", "max_split_size_mb:64,\npolicy:native"}}));
  std::istringstream lines(text);
  std::string first;
  std::getline(lines, first);
  CHECK(first.substr(0, 14) == "FRAGSHIM_CONF ");
  CHECK(contains(first, "max_split_size_mb:64,?policy:native"));  // one line a row
  CHECK(first.substr(first.size() - 13) == "FRAGSHIM_CONF");
}

TEST_CASE("the effective configuration as JSON", "[config]") {
  const std::string json = effective_json(load_settings(
      MapEnvironment{{"FRAGSHIM_LOG", "a\"b\n"}, {"PYTORCH_ALLOC_CONF", "max_split_size_mb:64"}}));
  CHECK(json.front() == '{');
  CHECK(json.back() == '}');
  CHECK_FALSE(contains(json, "\n"));
  CHECK(contains(json, R"("FRAGSHIM_LOG":{"value":"a\"b\n","source":"FRAGSHIM_LOG"})"));
  CHECK(contains(json, R"("max_split_size_mb":{"value":"64","source":"PYTORCH_ALLOC_CONF"})"));
}
