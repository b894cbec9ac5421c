#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <string>

#include "core/analyze/convert.hpp"

namespace fragshim {

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t day = 86'400 * second;

const char* action_name(Action action) {
  switch (action) {
    case Action::allocate:
      return "allocate";
    case Action::free:
      return "free";
    case Action::allocate_failure:
      return "allocate failure";
    case Action::trim:
      return "trim";
    case Action::none:
      break;
  }
  return "none";
}

/// "H:M:S.nnnnnnnnn", after a date where the time counts from the epoch.
std::string time_text(std::int64_t time_ns) {
  char out[64];
  const std::int64_t ns = time_ns < 0 ? 0 : time_ns;
  const std::time_t seconds = static_cast<std::time_t>(ns / second);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const std::size_t used =
      std::strftime(out, sizeof out, ns < day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(out + used, sizeof out - used, ".%09d", static_cast<int>(ns % second));
  return out;
}

std::string address_text(Address address) {
  if (address == 0) return "(nil)";
  char out[32];
  std::snprintf(out, sizeof out, "0x%" PRIx64, address);
  return out;
}

}  // namespace

std::uint64_t write_csv(EventSource& source, std::ostream& out) {
  out << "Thread,Time,Action,Pointer,Size,Stream\n";
  std::uint64_t events = 0;
  Event event;
  for (; source.next(&event); ++events) {
    out << event.thread << ',' << time_text(event.time_ns) << ',' << action_name(event.action);
    if (event.action == Action::trim) {
      out << ",,,\n";
      continue;
    }
    out << ',' << address_text(event.address) << ',' << event.size << ',';
    if (event.stream < 10) {
      out << event.stream << '\n';
    } else {
      out << address_text(event.stream) << '\n';
    }
  }
  return events;
}

}  // namespace fragshim
