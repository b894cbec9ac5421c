#include "tests/driver/settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace standin {
namespace {

using fragshim::Bytes;

void complain(const char* name, const char* value) {
  std::fprintf(stderr, "standin: %s=%s is not understood and ignored\n", name, value);
}

template <class Number>
void read_number(const char* name, Number low, Number high, Number* out) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != 0 || value < low || value > high) return complain(name, text);
  *out = static_cast<Number>(value);
}

void read_switch(const char* name, bool* out) {
  int number = *out ? 1 : 0;
  read_number(name, 0, 1, &number);
  *out = number == 1;
}

Settings read() {
  Settings settings;
  settings.version = built_version;
  if (const char* text = std::getenv("STANDIN_MEMORY")) {
    if (!parse_size(text, &settings.memory)) complain("STANDIN_MEMORY", text);
  }
  read_number("STANDIN_DEVICES", 0, 16, &settings.devices);
  read_number("STANDIN_VERSION", 9000, built_version, &settings.version);
  read_switch("STANDIN_VIRTUAL", &settings.virtual_memory);
  read_switch("STANDIN_AUTO", &settings.automatic);
  read_switch("STANDIN_REENTER", &settings.reenter);
  int number = 0;
  read_number("STANDIN_DELAY_MS", 0, 1000000, &number);
  settings.delay = std::chrono::milliseconds(number);
  if (const char* text = std::getenv("STANDIN_FAIL")) {
    if (!parse_failures(text, &settings.failures)) complain("STANDIN_FAIL", text);
  }
  if (const char* text = std::getenv("STANDIN_LOG_LOOKUPS")) settings.lookup_log = text;
  return settings;
}

/// NAME:NTH[:CODE] or NAME:every:K[:CODE].
bool parse_rule(const std::string& text, FailRule* out) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  const bool every = parts.size() > 1 && parts[1] == "every";
  const std::size_t number = every ? 2 : 1;
  if (parts.size() <= number || parts.size() > number + 2 || parts[0].empty()) return false;
  char* end = nullptr;
  out->entry = parts[0];
  out->at = std::strtoull(parts[number].c_str(), &end, 10);
  if (*end != 0 || out->at == 0) return false;
  out->step = every ? out->at : 0;
  out->code = 2;
  if (parts.size() == number + 2) {
    out->code = static_cast<int>(std::strtol(parts[number + 1].c_str(), &end, 10));
    if (*end != 0 || out->code <= 0) return false;
  }
  return true;
}

}  // namespace

bool parse_size(const char* text, Bytes* out) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end == text) return false;
  const struct {
    const char* name;
    Bytes size;
  } units[] = {{"", 1}, {"KiB", fragshim::KiB}, {"MiB", fragshim::MiB}, {"GiB", fragshim::GiB}};
  for (const auto& unit : units) {
    if (std::strcmp(end, unit.name) != 0) continue;
    if (number == 0 || number > (Bytes{1} << 46) / unit.size) return false;
    *out = number * unit.size;
    return true;
  }
  return false;
}

bool parse_failures(const std::string& text, std::vector<FailRule>* out) {
  std::vector<FailRule> rules;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    FailRule rule;
    if (!parse_rule(part, &rule)) return false;
    rules.push_back(rule);
  }
  *out = rules;
  return true;
}

const Settings& settings() {
  static const Settings& it = *new Settings(read());  // lives until the process is gone
  return it;
}

}  // namespace standin
