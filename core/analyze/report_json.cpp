#include "core/analyze/report.hpp"

namespace fragshim {

namespace {

using Json = nlohmann::ordered_json;

Json heap_json(const HeapReport& h) {
  Json json = {{"requested_peak", h.requested_peak},
               {"allocated_peak", h.allocated_peak},
               {"reserved_peak", h.reserved_peak},
               {"utilisation", h.utilisation()},
               {"pinned_peak", h.pinned_peak},
               {"requested", h.requested_end},
               {"allocated", h.allocated_end},
               {"reserved", h.reserved_end},
               {"allocations", h.allocations},
               {"device_alloc", h.device_alloc},
               {"device_free", h.device_free},
               {"device_time", h.device_time_us},
               {"retries", h.retries},
               {"trims", h.trims},
               {"ooms", h.ooms},
               {"waits", h.waits},
               {"stitches", h.stitches}};
  if (const auto growth = h.low_water.growth()) {
    json["growth"] = {{"from", growth->from},
                      {"to", growth->to},
                      {"seconds", growth->seconds},
                      {"bytes_per_second", growth->bytes_per_second()}};
  }
  return json;
}

Json failure_json(const FailureReport& f) {
  Json json = {{"seconds", f.seconds},
               {"device", f.device},
               {"heap", f.heap},
               {"class", f.cause},
               {"request", f.request},
               {"capacity", f.capacity},
               {"available", f.available},
               {"shortfall", f.shortfall},
               {"largest_reachable", f.largest_reachable},
               {"largest_bound", f.largest_bound},
               {"reserved", f.reserved},
               {"allocated", f.allocated},
               {"pinned", f.pinned}};
  if (!f.worst_pin.empty()) {
    json["worst_pin"] = {
        {"address", f.worst_pin}, {"size", f.worst_pin_size}, {"pinned", f.worst_pin_pinned}};
  }
  return json;
}

Json process_json(const ProcessReport& p) {
  Json json = {{"path", p.path},
               {"program", p.program},
               {"host", p.host},
               {"rank", p.rank},
               {"pid", p.pid},
               {"version", p.version},
               {"begin", p.begin},
               {"end", p.end},
               {"ended", p.ended},
               {"records", p.records},
               {"bad_lines", p.bad_lines},
               {"truncated", p.truncated}};
  json["devices"] = Json::array();
  for (const auto& [device, info] : p.devices) {
    json["devices"].push_back(
        {{"device", device}, {"name", info.first}, {"card_total", info.second}});
  }
  json["settings"] = Json::object();
  for (const SettingReport& s : p.settings) {
    json["settings"][s.name] = {{"value", s.value}, {"source", s.source}};
  }
  json["heaps"] = Json::array();
  for (const auto& [key, heap] : p.heaps) {
    Json one = {{"device", key.first}, {"heap", key.second}};
    one.update(heap_json(heap));
    json["heaps"].push_back(std::move(one));
  }
  json["failure_classes"] = p.failure_classes;
  json["failures"] = Json::array();
  for (const FailureReport& f : p.failures) json["failures"].push_back(failure_json(f));
  json["warnings"] = Json::array();
  for (const WarningReport& w : p.warnings) {
    json["warnings"].push_back({{"code", w.code}, {"text", w.text}, {"count", w.count}});
  }
  return json;
}

}  // namespace

Json report_json(const std::vector<ProcessReport>& processes) {
  Json json = {{"schema", 1}, {"processes", Json::array()}};
  ProcessReport all;
  for (const ProcessReport& p : processes) {
    json["processes"].push_back(process_json(p));
    all.heaps[{static_cast<int>(all.heaps.size()), ""}] = p.total();
    for (const auto& [name, count] : p.failure_classes) all.failure_classes[name] += count;
  }
  json["total"] = heap_json(all.total());
  json["total"]["failure_classes"] = all.failure_classes;
  return json;
}

}  // namespace fragshim
