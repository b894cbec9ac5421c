#include "core/analyze/perfetto_writer.hpp"

#include <cinttypes>
#include <cstdio>
#include <string>

#include "core/analyze/convert_model.hpp"

namespace fragshim {

namespace {

class PerfettoWriter {
 public:
  explicit PerfettoWriter(std::ostream& out) : out_(out), heap_(ReplayOptions{}) {}

  std::uint64_t run(EventSource& source) {
    out_ << R"({"displayTimeUnit":"ms","traceEvents":[)";
    write(R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"GPU memory"}})");
    const TraceCounts counts =
        run_model(source, Doors::all, &heap_,
                  [this](const Event& event, const ReplayStep& step, Address address) {
                    write_step(event, step, address);
                  });
    out_ << "\n]}\n";
    return counts.events;
  }

 private:
  void write(const std::string& json) {
    out_ << (first_ ? "\n" : ",\n") << json;
    first_ = false;
  }

  void write_step(const Event& event, const ReplayStep& step, Address address) {
    const double us = static_cast<double>(event.time_ns) / 1000;
    if (step.action == Action::trim) write_mark(us, "cache emptied");
    if (step.action == Action::allocate && address == 0) write_mark(us, "out of memory");
    const Counters now = heap_.heap().counters();
    write_counter(us, "requested", now.requested, &shown_.requested);
    write_counter(us, "allocated", now.allocated, &shown_.allocated);
    write_counter(us, "reserved", now.reserved, &shown_.reserved);
  }

  void write_counter(double us, const char* name, Bytes value, Bytes* shown) {
    if (value == *shown) return;
    *shown = value;
    char json[200];
    std::snprintf(json, sizeof json,
                  R"({"name":"%s","ph":"C","pid":1,"ts":%.3f,"args":{"bytes":%)" PRIu64 "}}", name,
                  us, value);
    write(json);
  }

  void write_mark(double us, const char* name) {
    char json[200];
    std::snprintf(json, sizeof json, R"({"name":"%s","ph":"i","s":"p","pid":1,"tid":1,"ts":%.3f})",
                  name, us);
    write(json);
  }

  std::ostream& out_;
  ReplayHeap heap_;
  Counters shown_;
  bool first_ = true;
};

}  // namespace

std::uint64_t write_perfetto(EventSource& source, std::ostream& out) {
  return PerfettoWriter(out).run(source);
}

}  // namespace fragshim
