#include "core/analyze/report.hpp"

#include <algorithm>

#include "core/analyze/line_reader.hpp"

namespace fragshim {

namespace {

using Json = nlohmann::json;

/// A field as a number from 0 up; 0 where it is missing or something else.
std::uint64_t number(const Json& record, const char* name) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number()) return 0;
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  const double value = found->get<double>();
  return value >= 0 && value < 1e19 ? static_cast<std::uint64_t>(value) : 0;
}

double real(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

/// A device's ordinal; nobody has as many.
int ordinal(const Json& record) {
  return static_cast<int>(std::min<std::uint64_t>(number(record, "device"), 1 << 20));
}

void raise(std::uint64_t* highest, const Json& record, const char* name) {
  *highest = std::max(*highest, number(record, name));
}

/// Builds a ProcessReport record by record.
class LogReader {
 public:
  explicit LogReader(ProcessReport* report) : report_(*report) {}

  /// False: this is no record.
  bool take(std::string_view line) {
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_object() || number(record, "schema") != 1) return false;
    const std::string type = text(record, "type");
    if (type.empty()) return false;
    note_time(record);
    if (type == "start") take_start(record);
    if (type == "sample" || type == "exit") take_heap(record);
    if (type == "oom") take_failure(record);
    if (type == "warning") take_warning(record);
    if (type == "exit") report_.ended = true;
    return true;
  }

 private:
  void note_time(const Json& record) {
    const double time = real(record, "time");
    if (report_.records++ == 0) report_.begin = time;
    report_.end = std::max(report_.end, time);
    if (report_.pid == 0) report_.pid = static_cast<std::int64_t>(number(record, "pid"));
  }

  void take_start(const Json& record) {
    report_.program = text(record, "program");
    report_.host = text(record, "host");
    report_.rank = text(record, "rank");
    report_.version = text(record, "version");
    report_.devices[ordinal(record)] = {text(record, "device_name"), number(record, "card_total")};
    const auto config = record.find("config");
    if (config == record.end() || !config->is_object()) return;
    report_.settings.clear();
    for (const auto& [name, option] : config->items()) {
      if (!option.is_object()) continue;
      const SettingReport setting{name, text(option, "value"), text(option, "source")};
      if (setting.source != "default") report_.settings.push_back(setting);
    }
  }

  HeapReport& heap(const Json& record) {
    return report_.heaps[{ordinal(record), text(record, "heap")}];
  }

  void take_heap(const Json& record) {
    HeapReport& h = heap(record);
    raise(&h.requested_peak, record, "requested_peak");
    raise(&h.requested_peak, record, "requested");
    raise(&h.allocated_peak, record, "allocated_peak");
    raise(&h.allocated_peak, record, "allocated");
    raise(&h.reserved_peak, record, "reserved_peak");
    raise(&h.reserved_peak, record, "reserved");
    raise(&h.pinned_peak, record, "pinned");
    raise(&h.allocations, record, "allocations");
    raise(&h.device_alloc, record, "device_alloc");
    raise(&h.device_free, record, "device_free");
    raise(&h.device_time_us, record, "device_time");
    raise(&h.retries, record, "retries");
    raise(&h.trims, record, "trims");
    raise(&h.ooms, record, "ooms");
    raise(&h.waits, record, "waits");
    raise(&h.stitches, record, "stitches");
    h.requested_end = number(record, "requested");
    h.allocated_end = number(record, "allocated");
    h.reserved_end = number(record, "reserved");
    if (text(record, "type") == "sample") {
      h.low_water.add(real(record, "time"), number(record, "requested"));
    }
  }

  void take_failure(const Json& record) {
    HeapReport& h = heap(record);
    raise(&h.ooms, record, "ooms");
    raise(&h.pinned_peak, record, "pinned");
    std::string cause = text(record, "class");
    if (cause.empty()) cause = "unclassified";
    ++report_.failure_classes[cause];
    if (report_.failures.size() == ProcessReport::most_failures) return;
    FailureReport f;
    f.seconds = std::max(0.0, real(record, "time") - report_.begin);
    f.device = ordinal(record);
    f.heap = text(record, "heap");
    f.cause = std::move(cause);
    f.request = number(record, "request");
    f.capacity = number(record, "capacity");
    f.available = number(record, "available");
    f.shortfall = number(record, "shortfall");
    f.largest_reachable = number(record, "largest_reachable");
    f.largest_bound = number(record, "largest_bound");
    f.reserved = number(record, "reserved");
    f.allocated = number(record, "allocated");
    f.pinned = number(record, "pinned");
    take_worst_pin(record, &f);
    report_.failures.push_back(std::move(f));
  }

  void take_worst_pin(const Json& record, FailureReport* failure) {
    const auto pins = record.find("pins");
    if (pins == record.end() || !pins->is_array() || pins->empty()) return;
    const Json& worst = pins->front();
    if (!worst.is_object()) return;
    failure->worst_pin = text(worst, "address");
    failure->worst_pin_size = number(worst, "size");
    failure->worst_pin_pinned = number(worst, "pinned");
  }

  void take_warning(const Json& record) {
    const std::string code = text(record, "code");
    for (WarningReport& warning : report_.warnings) {
      if (warning.code == code) {
        ++warning.count;
        return;
      }
    }
    report_.warnings.push_back({code, text(record, "text"), 1});
  }

  ProcessReport& report_;
};

}  // namespace

double HeapReport::utilisation() const {
  if (reserved_peak == 0) return 1;
  return static_cast<double>(allocated_peak) / static_cast<double>(reserved_peak);
}

HeapReport ProcessReport::total() const {
  HeapReport sum;
  for (const auto& [key, h] : heaps) {
    sum.requested_peak += h.requested_peak;
    sum.allocated_peak += h.allocated_peak;
    sum.reserved_peak += h.reserved_peak;
    sum.pinned_peak += h.pinned_peak;
    sum.requested_end += h.requested_end;
    sum.allocated_end += h.allocated_end;
    sum.reserved_end += h.reserved_end;
    sum.allocations += h.allocations;
    sum.device_alloc += h.device_alloc;
    sum.device_free += h.device_free;
    sum.device_time_us += h.device_time_us;
    sum.retries += h.retries;
    sum.trims += h.trims;
    sum.ooms += h.ooms;
    sum.waits += h.waits;
    sum.stitches += h.stitches;
  }
  return sum;
}

ProcessReport read_log(ByteStream input) {
  ProcessReport report;
  report.path = input.name();
  LineReader lines(std::move(input));
  LogReader reader(&report);
  std::string_view line;
  while (lines.next(&line)) {
    if (line.empty() || reader.take(line)) continue;
    if (lines.terminated()) {
      ++report.bad_lines;
    } else {
      report.truncated = true;
    }
  }
  return report;
}

}  // namespace fragshim
