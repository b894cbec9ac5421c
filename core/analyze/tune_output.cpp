#include "core/analyze/tune_output.hpp"

#include <cmath>
#include <cstdio>

#include "core/analyze/replay_output.hpp"
#include "core/analyze/size_text.hpp"
#include "core/analyze/text_table.hpp"
#include "core/analyze/tune_rank.hpp"

namespace fragshim {

namespace {

using Json = nlohmann::ordered_json;

std::string ms_text(double us) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", us / 1000);
  return text;
}

std::string times_text(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

const char* allocator_name(TunedAllocator allocator) {
  return allocator == TunedAllocator::pytorch ? "PyTorch's allocator" : "fragshim";
}

std::string setting_text(const TuneSetting& setting) {
  return setting.conf.empty() ? "default" : setting.conf;
}

/// "38.5 GiB, where the default needs 45.3 GiB (15.0% less)".
std::string need_text(const TuneRow& row, const TuneRow& standard) {
  std::string out = size_text(row.needed);
  if (&row == &standard || row.needed >= standard.needed) return out;
  const auto saved = static_cast<double>(standard.needed - row.needed);
  return out + ", where the default needs " + size_text(standard.needed) + " (" +
         percent_text(saved / static_cast<double>(standard.needed)) + " less)";
}

std::string cost_text(const TuneRow& row, const TuneRow& standard) {
  std::string out = ms_text(row.device_time_us) + " ms in driver calls over the trace";
  if (&row != &standard) out += ", the default " + ms_text(standard.device_time_us) + " ms";
  if (row.retries != 0 || standard.retries != 0) {
    out += "; retries, each of which waits for the GPU: " + std::to_string(row.retries);
    if (&row != &standard) out += ", the default " + std::to_string(standard.retries);
  }
  return out;
}

bool uses(const TuneRow& row, const char* key) {
  return row.setting.conf.find(key) != std::string::npos;
}

void add_reasons(const Tuning& tuning, const TuneRow& row, std::vector<std::string>* lines) {
  const TuneRow& standard = tuning.standard(row.setting.allocator);
  if (tuning.capacity != unlimited && &row != &standard && !standard.completes()) {
    lines->push_back("completes in " + size_text(tuning.capacity) + ", where the default fails " +
                     times_text(standard.failures, "time"));
  }
  if (row.needed != 0) lines->push_back("runs in " + need_text(row, standard));
  lines->push_back("costs " + cost_text(row, standard));
  if (tuning.capacity != unlimited && !row.roomy) {
    lines->push_back("leaves hardly any room: a run that is a little larger may fail");
  }
  if (row.setting.allocator == TunedAllocator::pytorch && uses(row, "large_segment_size_mb")) {
    lines->push_back("large_segment_size_mb takes PyTorch 2.11 or newer");
  }
  if (uses(row, "garbage_collection_threshold")) {
    lines->push_back(
        "garbage collection acts only under torch.cuda.set_per_process_memory_fraction");
  }
}

std::vector<std::string> shortage_advice(const Tuning& tuning, TunedAllocator allocator) {
  const Bytes least = tuning.least_needed(allocator);
  std::vector<std::string> lines = {"no setting completes in " + size_text(tuning.capacity)};
  if (least != unlimited && least > tuning.capacity) {
    lines.push_back("the memory is too small by " + size_text(least - tuning.capacity) +
                    ": the least that any setting needs is " + size_text(least));
  }
  if (tuning.requested_peak > tuning.capacity) {
    lines.push_back("the program holds " + size_text(tuning.requested_peak) +
                    " at once: no allocator can help, short of " +
                    size_text(tuning.requested_peak - tuning.capacity));
  }
  return lines;
}

void add_table(const Tuning& tuning, TunedAllocator allocator, std::string* out) {
  TextTable table({allocator_name(allocator), "peak reserved", "completes in", "failures",
                   "retries", "driver ms"});
  for (const TuneRow* row : ranked_rows(tuning, allocator)) {
    if (!row->shown) continue;
    table.add({setting_text(row->setting), size_text(row->reserved_peak),
               row->needed == 0 ? "-" : size_text(row->needed), std::to_string(row->failures),
               std::to_string(row->retries), ms_text(row->device_time_us)});
  }
  *out += table.text() + "\n";
}

Json row_json(const TuneRow& row) {
  return {{"allocator", row.setting.allocator == TunedAllocator::pytorch ? "pytorch" : "fragshim"},
          {"conf", row.setting.conf},
          {"reserved_peak", row.reserved_peak},
          {"needed", row.needed},
          {"ooms", row.failures},
          {"retries", row.retries},
          {"device_time_us", std::round(row.device_time_us * 1000) / 1000},
          {"roomy", row.roomy}};
}

Json advice_json(const Tuning& tuning, TunedAllocator allocator) {
  const TuneRow& best = tuning.best(allocator);
  Json json = {{"completes", best.completes()}};
  json["best"] = row_json(best);
  json["line"] = best.completes() ? tune_line(best.setting) : "";
  json["default_is_best"] = &best == &tuning.standard(allocator);
  const Bytes least = tuning.least_needed(allocator);
  json["least_needed"] = least == unlimited ? 0 : least;
  json["short_by"] = best.completes() || least == unlimited || least < tuning.capacity
                         ? 0
                         : least - tuning.capacity;
  json["advice"] = tune_advice(tuning, allocator);
  return json;
}

}  // namespace

std::string tune_line(const TuneSetting& setting) {
  if (setting.allocator == TunedAllocator::pytorch) {
    return setting.conf.empty() ? "" : "export PYTORCH_CUDA_ALLOC_CONF=" + setting.conf;
  }
  return "fragrun " + (setting.conf.empty() ? std::string() : "--conf " + setting.conf + " ") +
         "-- COMMAND";
}

std::vector<std::string> tune_advice(const Tuning& tuning, TunedAllocator allocator) {
  const TuneRow& best = tuning.best(allocator);
  if (!best.completes()) return shortage_advice(tuning, allocator);
  std::vector<std::string> lines;
  const std::string line = tune_line(best.setting);
  lines.push_back(line.empty() ? "the default is best: set nothing" : line);
  if (!line.empty() && best.setting.conf.empty()) lines.push_back("fragshim's default is best");
  add_reasons(tuning, best, &lines);
  return lines;
}

std::string tune_text(const std::vector<TuneTrace>& traces, const Tuning& tuning) {
  std::string out;
  for (const TuneTrace& trace : traces) {
    out += trace.name + ": " + std::to_string(trace.steps.counts().events) + " events, at most " +
           size_text(trace.steps.requested_peak()) + " requested at once\n";
    out += left_out_note(trace.name, trace.steps.counts());
  }
  out += std::to_string(tuning.rows.size()) + " settings in " +
         (tuning.capacity == unlimited ? "memory without a limit" : size_text(tuning.capacity)) +
         ", " + std::to_string(tuning.replays) + " replays\n\n";
  for (const TunedAllocator allocator : {TunedAllocator::pytorch, TunedAllocator::fragshim}) {
    add_table(tuning, allocator, &out);
  }
  for (const TunedAllocator allocator : {TunedAllocator::pytorch, TunedAllocator::fragshim}) {
    out += std::string(allocator_name(allocator)) + ":\n";
    for (const std::string& line : tune_advice(tuning, allocator)) out += "  " + line + "\n";
  }
  return out;
}

nlohmann::ordered_json tune_json(const std::vector<TuneTrace>& traces, const Tuning& tuning) {
  Json json = {{"schema", 1},
               {"capacity", tuning.capacity == unlimited ? 0 : tuning.capacity},
               {"requested_peak", tuning.requested_peak},
               {"replays", tuning.replays}};
  json["traces"] = Json::array();
  for (const TuneTrace& trace : traces) {
    json["traces"].push_back({{"trace", trace.name},
                              {"events", trace.steps.counts().events},
                              {"requested_peak", trace.steps.requested_peak()},
                              {"left_out_events", trace.steps.counts().left_out_events},
                              {"left_out_peak", trace.steps.counts().left_out_peak}});
  }
  json["settings"] = Json::array();
  for (const TuneRow& row : tuning.rows) json["settings"].push_back(row_json(row));
  json["pytorch"] = advice_json(tuning, TunedAllocator::pytorch);
  json["fragshim"] = advice_json(tuning, TunedAllocator::fragshim);
  return json;
}

}  // namespace fragshim
