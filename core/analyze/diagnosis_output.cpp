#include <algorithm>
#include <cstdio>

#include "core/analyze/diagnosis.hpp"
#include "core/analyze/replay_output.hpp"
#include "core/analyze/size_text.hpp"
#include "core/analyze/tune_output.hpp"

namespace fragshim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t failures_shown = 5;

std::string decimal(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string at_place(const std::string& place) { return place.empty() ? "" : " at " + place; }

std::string when(const DiagnosedMoment& moment) {
  return "row " + std::to_string(moment.row) + " (" + decimal(moment.seconds) + " s)";
}

std::string pin_lines(const std::vector<DiagnosedPin>& pins) {
  std::string out;
  for (const DiagnosedPin& pin : pins) {
    out += "      " + size_text(pin.size) + " pins " + size_text(pin.pinned) + ", " +
           decimal(pin.age_seconds) + " s old, from row " + std::to_string(pin.row) +
           " on stream " + std::to_string(pin.stream) + at_place(pin.place) + "\n";
  }
  return out;
}

std::string failure_lines(const DiagnosedFailure& f) {
  std::string out = "    " + when(f.moment) + ": " + size_text(f.request) + " on stream " +
                    std::to_string(f.stream) + at_place(f.place) + " refused by " +
                    std::string(name(f.failure.cause));
  out += f.failure.shortfall == 0 ? "\n" : ", " + size_text(f.failure.shortfall) + " short\n";
  out += "      free in sum " + size_text(f.failure.available) + ", largest block in reach " +
         size_text(f.largest_reachable);
  if (f.largest_bound != 0) out += ", of other streams or pending " + size_text(f.largest_bound);
  out += "; " + size_text(f.moment.reserved) + " reserved, " + size_text(f.moment.allocated) +
         " allocated, " + size_text(f.moment.pinned) + " pinned\n";
  return out + pin_lines(f.moment.pins);
}

std::string failures_section(const Diagnosis& d) {
  if (d.failure_classes.empty()) {
    return d.capacity == unlimited ? "" : "  no failures in " + size_text(d.capacity) + "\n";
  }
  std::string out = "  failures in " + size_text(d.capacity) + ":";
  for (const auto& [name, count] : d.failure_classes) {
    out += " " + std::to_string(count) + " by " + name;
  }
  out += "\n";
  const std::size_t shown = std::min(failures_shown, d.failures.size());
  for (std::size_t i = 0; i < shown; ++i) out += failure_lines(d.failures[i]);
  if (d.failures.size() > shown) {
    out += "    and more (--json has " + std::to_string(d.failures.size()) + ")\n";
  }
  return out;
}

std::string worst_section(const Diagnosis& d) {
  if (d.worst.pinned == 0) return "";
  return "  most pinned when memory was taken: " + when(d.worst) + ": " +
         size_text(d.worst.pinned) + " of " + size_text(d.worst.reserved) + " reserved\n" +
         pin_lines(d.worst.pins);
}

std::string iteration_text(const LowWater::Growth& growth) {
  if (growth.iterations == 0) return "";
  return ", " + size_text(growth.bytes_per_iteration()) + " in each of " +
         std::to_string(growth.iterations) + " iterations";
}

std::string growth_section(const Diagnosis& d) {
  if (!d.growth) return "";
  std::string out = "  suspected leak: the least requested keeps rising, from " +
                    size_text(d.growth->from) + " to " + size_text(d.growth->to) + " in " +
                    decimal(d.growth->seconds) + " s (" +
                    size_text(static_cast<Bytes>(d.growth->bytes_per_second() * 60)) + " a minute" +
                    iteration_text(*d.growth) + ")\n";
  for (const DiagnosedHolder& holder : d.holders) {
    out += "      " + size_text(holder.bytes) + " in " + std::to_string(holder.blocks) +
           " never freed: " + holder.place + "\n";
  }
  return out;
}

std::string remedy_section(const Diagnosis& d) {
  if (!d.remedy) return "";
  std::string out;
  for (const TunedAllocator allocator : {TunedAllocator::pytorch, TunedAllocator::fragshim}) {
    out += allocator == TunedAllocator::pytorch ? "  what would have avoided it, in PyTorch:\n"
                                                : "  and under fragshim:\n";
    for (const std::string& line : tune_advice(*d.remedy, allocator)) out += "    " + line + "\n";
  }
  return out;
}

Json pins_json(const std::vector<DiagnosedPin>& pins) {
  Json json = Json::array();
  for (const DiagnosedPin& pin : pins) {
    json.push_back({{"size", pin.size},
                    {"pinned", pin.pinned},
                    {"age_seconds", pin.age_seconds},
                    {"row", pin.row},
                    {"stream", pin.stream},
                    {"place", pin.place}});
  }
  return json;
}

Json moment_json(const DiagnosedMoment& moment) {
  return {{"row", moment.row},           {"seconds", moment.seconds},
          {"reserved", moment.reserved}, {"allocated", moment.allocated},
          {"pinned", moment.pinned},     {"pins", pins_json(moment.pins)}};
}

Json failure_json(const DiagnosedFailure& f) {
  Json json = {{"class", name(f.failure.cause)},
               {"request", f.request},
               {"stream", f.stream},
               {"place", f.place},
               {"available", f.failure.available},
               {"shortfall", f.failure.shortfall},
               {"largest_reachable", f.largest_reachable},
               {"largest_bound", f.largest_bound}};
  json.update(moment_json(f.moment));
  return json;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d) {
  std::string out = d.trace + ": " + std::to_string(d.counts.events) + " events, under " +
                    policy_text(d.policy) + (d.conf.empty() ? "" : " with " + d.conf) + "\n";
  const Counters& c = d.counters;
  out += "  peaks: " + size_text(c.requested_peak) + " requested, " + size_text(c.allocated_peak) +
         " allocated, " + size_text(c.reserved_peak) + " reserved; " + std::to_string(c.retries) +
         " retries\n";
  if (d.counts.recorded_failures != 0) {
    out +=
        "  failures in the recording itself: " + std::to_string(d.counts.recorded_failures) + "\n";
  }
  out += left_out_note("  not replayed", d.counts);
  return out + failures_section(d) + worst_section(d) + growth_section(d) + remedy_section(d);
}

nlohmann::ordered_json diagnosis_json(const Diagnosis& d) {
  Json json = {{"trace", d.trace},
               {"policy", policy_text(d.policy)},
               {"conf", d.conf},
               {"capacity", d.capacity == unlimited ? 0 : d.capacity},
               {"events", d.counts.events},
               {"requested_peak", d.counters.requested_peak},
               {"allocated_peak", d.counters.allocated_peak},
               {"reserved_peak", d.counters.reserved_peak},
               {"retries", d.counters.retries},
               {"left_out_events", d.counts.left_out_events},
               {"left_out_peak", d.counts.left_out_peak},
               {"failure_classes", d.failure_classes}};
  json["failures"] = Json::array();
  for (const DiagnosedFailure& failure : d.failures)
    json["failures"].push_back(failure_json(failure));
  json["most_pinned"] = moment_json(d.worst);
  if (d.growth) {
    json["growth"] = {{"from", d.growth->from},
                      {"to", d.growth->to},
                      {"seconds", d.growth->seconds},
                      {"iterations", d.growth->iterations},
                      {"bytes_per_iteration", d.growth->bytes_per_iteration()}};
    for (const DiagnosedHolder& holder : d.holders) {
      json["growth"]["never_freed"].push_back(
          {{"place", holder.place}, {"bytes", holder.bytes}, {"blocks", holder.blocks}});
    }
  }
  if (d.remedy) {
    json["remedy"] = {{"pytorch", tune_advice(*d.remedy, TunedAllocator::pytorch)},
                      {"fragshim", tune_advice(*d.remedy, TunedAllocator::fragshim)}};
  }
  return json;
}

}  // namespace fragshim
