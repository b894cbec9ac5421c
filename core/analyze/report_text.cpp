#include <algorithm>
#include <cstdio>

#include "core/analyze/report.hpp"
#include "core/analyze/size_text.hpp"
#include "core/analyze/text_table.hpp"

namespace fragshim {

namespace {

constexpr std::size_t failures_shown = 10;

std::string decimal(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string counted(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string heap_name(int device, const std::string& heap) {
  return "GPU " + std::to_string(device) + " " + heap;
}

std::string title(const ProcessReport& p) {
  std::string out = p.program.empty() ? p.path : p.program;
  if (!p.rank.empty()) out += ", rank " + p.rank;
  if (p.pid != 0) out += ", process " + std::to_string(p.pid);
  if (!p.host.empty()) out += " on " + p.host;
  out += ", " + decimal(p.end - p.begin) + " s";
  return out + (p.ended ? "" : ", no exit record (still running, or killed)") + "\n";
}

std::string settings_line(const ProcessReport& p) {
  if (p.settings.empty()) return "  settings: all default\n";
  std::string out = "  settings:";
  for (const SettingReport& s : p.settings) {
    out += " " + s.name + "=" + s.value + " (" + s.source + ")";
  }
  return out + "\n";
}

std::string device_lines(const ProcessReport& p) {
  std::string out;
  for (const auto& [device, info] : p.devices) {
    const auto& [name, total] = info;
    out += "  GPU " + std::to_string(device) + ": " + (name.empty() ? "unnamed" : name);
    out += (total == 0 ? "" : ", " + size_text(total)) + "\n";
  }
  return out;
}

TextTable::Row heap_row(std::string name, const HeapReport& h) {
  return {std::move(name),
          size_text(h.requested_peak),
          size_text(h.allocated_peak),
          size_text(h.reserved_peak),
          percent_text(h.utilisation()),
          size_text(h.pinned_peak),
          std::to_string(h.allocations),
          std::to_string(h.device_alloc + h.device_free),
          std::to_string(h.retries),
          std::to_string(h.ooms)};
}

TextTable heap_table(std::string first) {
  return TextTable({std::move(first), "requested peak", "allocated peak", "reserved peak",
                    "utilisation", "most pinned", "allocations", "device calls", "retries",
                    "failures"});
}

std::string indented(const std::string& lines) {
  std::string out;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin) + 1;
    out += "  " + lines.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

std::string classes_text(const std::map<std::string, std::uint64_t>& classes) {
  std::string out;
  for (const auto& [name, count] : classes) {
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " by " + name;
  }
  return out;
}

std::string failure_lines(const FailureReport& f) {
  std::string out = "    at " + decimal(f.seconds) + " s, " + heap_name(f.device, f.heap) + ": " +
                    size_text(f.request) + " refused by " + f.cause;
  out += f.shortfall == 0 ? "\n" : ", " + size_text(f.shortfall) + " short\n";
  out += "      free in sum " + size_text(f.available) + ", largest block in reach " +
         size_text(f.largest_reachable);
  if (f.largest_bound != 0) {
    out += ", of other streams or pending " + size_text(f.largest_bound);
  }
  out += "; " + size_text(f.reserved) + " reserved, " + size_text(f.allocated) + " allocated, " +
         size_text(f.pinned) + " pinned\n";
  if (!f.worst_pin.empty()) {
    out += "      pins the most: a block of " + size_text(f.worst_pin_size) + " at " + f.worst_pin +
           " keeps " + size_text(f.worst_pin_pinned) + " from being returned\n";
  }
  return out;
}

std::string failures_section(const ProcessReport& p) {
  if (p.failure_classes.empty()) return "";
  std::string out = "  failures: " + classes_text(p.failure_classes) + "\n";
  const std::size_t shown = std::min(failures_shown, p.failures.size());
  for (std::size_t i = 0; i < shown; ++i) out += failure_lines(p.failures[i]);
  if (p.failures.size() > shown) {
    out += "    and " + std::to_string(p.failures.size() - shown) + " more (--json has them)\n";
  }
  return out;
}

std::string growth_lines(const ProcessReport& p) {
  std::string out;
  for (const auto& [key, heap] : p.heaps) {
    const auto growth = heap.low_water.growth();
    if (!growth) continue;
    out += "  suspected leak: " + heap_name(key.first, key.second) +
           ": the least requested keeps rising, from " + size_text(growth->from) + " to " +
           size_text(growth->to) + " in " + decimal(growth->seconds) + " s (" +
           size_text(static_cast<Bytes>(growth->bytes_per_second() * 60)) + " a minute)\n";
  }
  return out;
}

std::string warning_lines(const ProcessReport& p) {
  std::string out;
  for (const WarningReport& w : p.warnings) {
    out += "  warning " + w.code + ": " + w.text;
    out += w.count == 1 ? "\n" : " (" + std::to_string(w.count) + " times)\n";
  }
  if (p.truncated) out += "  the log's last line is cut off\n";
  if (p.bad_lines != 0) out += "  " + counted(p.bad_lines, "line") + " of the log left out\n";
  return out;
}

std::string process_text(const ProcessReport& p) {
  std::string out = title(p) + device_lines(p) + settings_line(p);
  if (p.records == 0) return out + "  no records\n" + warning_lines(p);
  if (p.heaps.empty()) {
    out += "  no samples\n";
  } else {
    TextTable table = heap_table("heap");
    for (const auto& [key, heap] : p.heaps) {
      table.add(heap_row(heap_name(key.first, key.second), heap));
    }
    out += indented(table.text());
  }
  return out + failures_section(p) + growth_lines(p) + warning_lines(p);
}

std::string label(const ProcessReport& p) {
  return p.rank.empty() ? "process " + std::to_string(p.pid) : "rank " + p.rank;
}

std::string ranks_table(const std::vector<ProcessReport>& processes) {
  TextTable table = heap_table(std::to_string(processes.size()) + " processes");
  ProcessReport all;
  for (const ProcessReport& p : processes) {
    table.add(heap_row(label(p), p.total()));
    all.heaps[{static_cast<int>(all.heaps.size()), ""}] = p.total();
    for (const auto& [name, count] : p.failure_classes) all.failure_classes[name] += count;
  }
  table.add(heap_row("total", all.total()));
  std::string out = table.text();
  if (!all.failure_classes.empty()) {
    out += "failures: " + classes_text(all.failure_classes) + "\n";
  }
  return out;
}

}  // namespace

std::string report_text(const std::vector<ProcessReport>& processes) {
  std::string out;
  if (processes.size() > 1) out += ranks_table(processes) + "\n";
  for (std::size_t i = 0; i < processes.size(); ++i) {
    out += (i == 0 ? "" : "\n") + process_text(processes[i]);
  }
  return out;
}

}  // namespace fragshim
