#include "core/analyze/replay_output.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/analyze/size_text.hpp"
#include "core/analyze/text_table.hpp"

namespace fragshim {

namespace {

double thousandths(double value) { return std::round(value * 1000) / 1000; }

std::string share_text(Bytes part, Bytes whole) {
  return whole == 0 ? "-" : percent_text(static_cast<double>(part) / static_cast<double>(whole));
}

std::string decimal_text(double value) {
  std::string text = std::to_string(std::round(value * 10) / 10);
  return text.substr(0, text.find('.') + 2);
}

void add_note(std::string* notes, const std::string& trace, std::uint64_t count, const char* what) {
  if (count != 0) *notes += trace + ": " + std::to_string(count) + " " + what + "\n";
}

std::string recorded_note(const ReplayedTrace& replayed) {
  if (!replayed.recorded) return "";
  const RecordedState& state = *replayed.recorded;
  std::string out = replayed.trace + ": the recording says that " + size_text(state.reserved) +
                    " were reserved at its end (here " + size_text(replayed.result.reserved_end) +
                    ")";
  if (!state.conf.empty()) out += " under " + state.conf;
  out += "\n";
  if (state.alive_before == 0) return out;
  return out + replayed.trace + ": " + std::to_string(state.alive_before) +
         " blocks are older than the recording: what was cached beside them is not known\n";
}

std::string notes(const ReplayedTrace& replayed) {
  const ReplayResult& r = replayed.result;
  std::string out;
  for (const auto& [name, count] : r.failure_classes) {
    add_note(&out, replayed.trace, count, ("failed by " + name).c_str());
  }
  if (r.first_oom_event >= 0) {
    out +=
        replayed.trace + ": the first failure is row " + std::to_string(r.first_oom_event) + "\n";
  }
  add_note(&out, replayed.trace, r.recorded_failures, "failures in the recording, not replayed");
  add_note(&out, replayed.trace, r.unmatched_frees, "frees of addresses never allocated, ignored");
  add_note(&out, replayed.trace, r.implied_frees, "frees missing before an address came again");
  add_note(&out, replayed.trace, r.incomplete, "incomplete rows, left out");
  return out + left_out_note(replayed.trace, r) + recorded_note(replayed);
}

}  // namespace

std::string left_out_note(const std::string& trace, const TraceCounts& counts) {
  if (counts.left_out_events == 0) return "";
  return trace + ": " + std::to_string(counts.left_out_events) +
         " events of cudaMalloc left out: the program's allocator uses cudaMallocAsync; they "
         "hold " +
         size_text(counts.left_out_peak) + " at most, beside what is shown\n";
}

std::string replay_json(const ReplayedTrace& replayed) {
  const ReplayResult& r = replayed.result;
  nlohmann::ordered_json json = {
      {"trace", replayed.trace},
      {"policy", policy_text(replayed.policy)},
      {"conf", replayed.conf},
      {"capacity", replayed.capacity == unlimited ? 0 : replayed.capacity},
      {"events", r.events},
      {"requested_peak", r.requested_peak},
      {"allocated_peak", r.allocated_peak},
      {"reserved_peak", r.reserved_peak},
      {"reserved_end", r.reserved_end},
      {"allocated_end", r.allocated_end},
      {"device_alloc", r.device_alloc},
      {"device_free", r.device_free},
      {"retries", r.retries},
      {"ooms", r.ooms},
      {"first_oom_event", r.first_oom_event},
      {"inactive_split_end", r.inactive_split_end},
      {"device_time_us", thousandths(r.device_time_us)},
      {"replay_ns_per_event", thousandths(r.replay_ns_per_event)},
      {"duration_us", static_cast<double>(r.duration_ns()) / 1000},
      {"device_time_share", r.device_time_share()},
      {"device_time_late_us", thousandths(r.device_time_late_us)},
      {"device_time_late_share", r.device_time_late_share()},
      {"failure_classes", r.failure_classes},
      {"recorded_failures", r.recorded_failures},
      {"unmatched_frees", r.unmatched_frees},
      {"implied_frees", r.implied_frees},
      {"incomplete", r.incomplete},
      {"left_out_events", r.left_out_events},
      {"left_out_peak", r.left_out_peak},
  };
  if (replayed.recorded) {
    json["recorded"] = {{"reserved_end", replayed.recorded->reserved},
                        {"conf", replayed.recorded->conf},
                        {"alive_before", replayed.recorded->alive_before}};
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string replay_text(const std::vector<ReplayedTrace>& replayed) {
  TextTable table({"trace", "events", "requested peak", "allocated peak", "reserved peak",
                   "utilisation", "device calls", "retries", "failures", "device ms", "of the run",
                   "ns/event"});
  std::string all_notes;
  for (const ReplayedTrace& one : replayed) {
    const ReplayResult& r = one.result;
    table.add({one.trace, std::to_string(r.events), size_text(r.requested_peak),
               size_text(r.allocated_peak), size_text(r.reserved_peak),
               share_text(r.allocated_peak, r.reserved_peak),
               std::to_string(r.device_alloc + r.device_free), std::to_string(r.retries),
               std::to_string(r.ooms), decimal_text(r.device_time_us / 1000),
               r.duration_ns() > 0 ? percent_text(r.device_time_share()) : "-",
               decimal_text(r.replay_ns_per_event)});
    all_notes += notes(one);
  }
  return table.text() + all_notes;
}

}  // namespace fragshim
