#include "config/file_pattern.hpp"

#include <unistd.h>

#include <algorithm>

#include "config/parse_size.hpp"

namespace fragshim {
namespace {

std::string process_id() { return std::to_string(static_cast<long>(getpid())); }

// What is put in names a file, never a folder.
void append_without_slashes(std::string& out, std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  out += text;
}

// Puts in what the % that `rest` begins with stands for; returns how many characters that was, 0
// where it is none of the patterns.
std::size_t expand_one(std::string& out, std::string_view rest, const Environment& environment) {
  if (rest.size() < 2) return 0;
  switch (rest[1]) {
    case '%':
      out += '%';
      return 2;
    case 'p':
      out += process_id();
      return 2;
    case 'h':
      append_without_slashes(out, host_name());
      return 2;
    case 'r':
      out += process_rank(environment);
      return 2;
    case 'q': {
      const auto close = rest.find('}');
      if (rest.size() < 3 || rest[2] != '{' || close == std::string_view::npos) return 0;
      const std::string name(rest.substr(3, close - 3));
      append_without_slashes(out, environment.get(name.c_str()).value_or(""));
      return close + 1;
    }
    default:
      return 0;
  }
}

}  // namespace

std::string process_rank(const Environment& environment) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const auto value = environment.get(name);
    if (!value) continue;
    if (const auto rank = parse_integer(*value)) return std::to_string(*rank);
  }
  return "0";
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string expand_file_pattern(std::string_view pattern, const Environment& environment) {
  std::string out;
  while (!pattern.empty()) {
    const std::size_t taken =
        pattern.front() == '%' ? expand_one(out, pattern, environment) : std::size_t{0};
    if (taken == 0) out += pattern.front();
    pattern.remove_prefix(std::max<std::size_t>(taken, 1));
  }
  return out;
}

}  // namespace fragshim
