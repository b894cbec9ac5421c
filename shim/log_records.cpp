#include "shim/log_records.hpp"

#include <cinttypes>
#include <cstdio>

#include "config/describe.hpp"
#include "config/json.hpp"

namespace fragshim::log {
namespace {

/// One record under construction: begun with what all have in common.
class Record {
 public:
  Record(const Stamp& stamp, std::string_view type) : json_(line_) {
    char time[40];
    std::snprintf(time, sizeof time, "%" PRId64 ".%06d", stamp.time_us / 1000000,
                  static_cast<int>(stamp.time_us % 1000000));
    json_.begin_object().field("schema", schema_version).field("type", type);
    json_.key("time").raw(time).field("pid", stamp.pid);
  }

  Record& heap(int device, HeapKind kind) {
    json_.field("device", device).field("heap", log::name(kind));
    return *this;
  }

  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  template <typename Value>
  Record& field(std::string_view name, const Value& value) {
    json_.field(name, value);
    return *this;
  }

  Record& address(std::string_view name, Address address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%" PRIx64, address);
    return field(name, std::string_view(text));
  }

  Record& skipped(std::uint64_t count) { return count == 0 ? *this : field("skipped", count); }

  JsonWriter& json() { return json_; }

  std::string finish() {
    json_.end_object();
    return std::move(line_);
  }

 private:
  std::string line_;
  JsonWriter json_;
};

/// The histogram without its zeros: {"9":3} is three free blocks of 512 to 1023 bytes.
void add_histogram(JsonWriter& json, const SizeHistogram& histogram) {
  json.key("free_histogram").begin_object();
  for (std::size_t power = 0; power < histogram.size(); ++power) {
    if (histogram[power] != 0) json.field(std::to_string(power), histogram[power]);
  }
  json.end_object();
}

void add_counters(Record& record, const Counters& c) {
  record.field("requested", c.requested)
      .field("allocated", c.allocated)
      .field("reserved", c.reserved)
      .field("cached", c.cached())
      .field("requested_peak", c.requested_peak)
      .field("allocated_peak", c.allocated_peak)
      .field("reserved_peak", c.reserved_peak)
      .field("allocations", c.allocations)
      .field("frees", c.frees)
      .field("device_alloc", c.device_alloc)
      .field("device_free", c.device_free)
      .field("splits", c.splits)
      .field("merges", c.merges)
      .field("stitches", c.stitches)
      .field("retries", c.retries)
      .field("trims", c.trims)
      .field("ooms", c.ooms)
      .field("waits", c.waits);
}

void add_usage(Record& record, const Usage& usage) {
  add_counters(record, usage);
  record.field("largest_free", usage.largest_free)
      .field("releasable", usage.releasable)
      .field("pinned", usage.pinned)
      .field("pending", usage.pending)
      .field("internal_fragmentation", usage.internal_fragmentation())
      .field("external_fragmentation", usage.external_fragmentation())
      .field("utilisation", usage.utilisation())
      .field("streams", usage.streams)
      .field("blocks", usage.live_blocks + usage.free_blocks)
      .field("live_blocks", usage.live_blocks)
      .field("segments", usage.segments);
  add_histogram(record.json(), usage.free_histogram);
}

void add_evidence(Record& record, const FailureEvidence& e) {
  record.field("request", e.request)
      .field("rounded", e.rounded)
      .field("segment_size", e.segment_size)
      .field("limit", e.limit == unlimited ? Bytes{0} : e.limit)
      .field("held", e.held)
      .field("card_free", e.device_free)
      .field("card_total", e.device_total)
      .field("largest_reachable", e.largest_reachable)
      .field("largest_bound", e.largest_bound);
}

void add_pins(Record& record, const FailureEvidence& evidence) {
  JsonWriter& json = record.json();
  json.key("pins").begin_array();
  for (std::size_t i = 0; i < evidence.pin_count; ++i) {
    const Pin& pin = evidence.pins[i];
    json.begin_object();
    record.address("address", pin.address).field("size", pin.size).field("pinned", pin.pinned);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string_view name(HeapKind kind) noexcept {
  return kind == HeapKind::stream_ordered ? "stream_ordered" : "synchronous";
}

std::string start_record(const Stamp& stamp, const ProcessFacts& process, const DeviceInfo& device,
                         const Settings& settings) {
  Record record(stamp, "start");
  record.field("version", FRAGSHIM_VERSION)
      .field("program", process.program)
      .field("host", process.host)
      .field("rank", process.rank)
      .field("device", device.device)
      .field("device_name", device.name)
      .field("device_uuid", device.uuid)
      .field("card_total", device.total_memory)
      .field("driver_version", device.driver_version);
  record.json().key("config").raw(effective_json(settings));
  return record.finish();
}

std::string sample_record(const Stamp& stamp, const HeapSample& sample,
                          const Surroundings& surroundings) {
  Record record(stamp, "sample");
  record.heap(sample.device, sample.kind);
  add_usage(record, sample.usage);
  record.field("device_time", sample.device_time_us);
  if (surroundings.card_total != 0) {
    record.field("card_free", surroundings.card_free).field("card_total", surroundings.card_total);
  }
  record.field("managed", surroundings.managed).field("host_pinned", surroundings.host);
  return record.finish();
}

std::string oom_record(const Stamp& stamp, const FailureReport& report, const Failure& failure,
                       std::uint64_t skipped) {
  Record record(stamp, "oom");
  record.heap(report.device, report.kind)
      .address("stream", report.stream)
      .field("class", fragshim::name(failure.cause))
      .field("capacity", failure.capacity)
      .field("available", failure.available)
      .field("shortfall", failure.shortfall);
  add_evidence(record, report.evidence);
  add_pins(record, report.evidence);
  add_usage(record, report.evidence.usage);
  return record.skipped(skipped).finish();
}

std::string retry_record(const Stamp& stamp, const RetryReport& report, std::uint64_t skipped) {
  Record record(stamp, "retry");
  record.heap(report.device, report.kind)
      .address("stream", report.stream)
      .field("request", report.request)
      .field("reserved", report.reserved);
  return record.skipped(skipped).finish();
}

std::string trim_record(const Stamp& stamp, const TrimReport& report, std::uint64_t skipped) {
  Record record(stamp, "trim");
  record.heap(report.device, report.kind)
      .field("keep", report.keep)
      .field("released", report.released)
      .field("reserved", report.reserved);
  return record.skipped(skipped).finish();
}

std::string warning_record(const Stamp& stamp, std::string_view code, std::string_view text) {
  return Record(stamp, "warning").field("code", code).field("text", text).finish();
}

std::string exit_record(const Stamp& stamp, const HeapSample& total, double seconds) {
  Record record(stamp, "exit");
  record.heap(total.device, total.kind);
  record.field("seconds", seconds);
  add_usage(record, total.usage);
  return record.field("device_time", total.device_time_us).finish();
}

}  // namespace fragshim::log
