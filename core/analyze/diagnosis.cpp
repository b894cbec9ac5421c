#include "core/analyze/diagnosis.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/analyze/code_place.hpp"
#include "core/analyze/convert_model.hpp"
#include "core/analyze/size_text.hpp"

namespace fragshim {

namespace {

constexpr std::size_t most_holders = 5;

class Watcher {
 public:
  Watcher(EventSource& source, const ReplayOptions& options, Diagnosis* out)
      : source_(source), heap_(options), out_(*out) {}

  void run() {
    const TraceCounts counts = run_model(source_, Doors::leading, &heap_,
                                         [this](const Event& event, const ReplayStep& step,
                                                Address address) { watch(event, step, address); });
    out_.counts = counts;
    out_.counters = heap_.heap().counters();
    out_.growth = low_water_.growth();
    if (out_.growth) find_holders();
  }

 private:
  /// Where a live block comes from.
  struct Origin {
    std::int64_t time_ns = 0;
    std::uint64_t row = 0;
    Bytes size = 0;
    StreamId stream = 0;
    std::uint32_t place = 0;  // index into places_
  };

  void watch(const Event& event, const ReplayStep& step, Address address) {
    if (!started_) start_ns_ = event.time_ns;
    started_ = true;
    now_ns_ = event.time_ns;
    row_ = step.row;
    if (step.action == Action::free) {
      origins_.erase(address);
    } else if (step.action == Action::allocate && address == 0) {
      note_failure(step);
    } else if (step.action == Action::allocate) {
      origins_[address] = {event.time_ns, step.row, step.size, step.stream, place_index()};
      note_growth(step);
    }
    low_water_.add(seconds(), heap_.heap().counters().requested);
  }

  /// Seconds since the start; rows where the recording has no times.
  double seconds() const {
    if (now_ns_ == 0) return static_cast<double>(row_);
    return static_cast<double>(now_ns_ - start_ns_) / 1e9;
  }

  std::uint32_t place_index() {
    const auto [known, added] = place_of_.try_emplace(code_place(source_.stack()),
                                                      static_cast<std::uint32_t>(places_.size()));
    if (added) places_.push_back(known->first);
    return known->second;
  }

  void note_failure(const ReplayStep& step) {
    const FailureEvidence evidence = heap_.evidence(step);
    DiagnosedFailure failure;
    failure.failure = classify(evidence);
    ++out_.failure_classes[std::string(name(failure.failure.cause))];
    if (out_.failures.size() == Diagnosis::most_failures) return;
    failure.moment = moment_of(evidence);
    failure.request = step.size;
    failure.stream = step.stream;
    failure.place = code_place(source_.stack());
    failure.largest_reachable = evidence.largest_reachable;
    failure.largest_bound = evidence.largest_bound;
    out_.failures.push_back(std::move(failure));
  }

  /// Memory was taken: how much lay idle and could not be used?
  void note_growth(const ReplayStep& step) {
    const std::uint64_t taken = heap_.heap().counters().device_alloc;
    if (taken == device_alloc_) return;
    device_alloc_ = taken;
    const FailureEvidence evidence = heap_.evidence(step);
    if (evidence.usage.pinned > out_.worst.pinned) out_.worst = moment_of(evidence);
  }

  DiagnosedMoment moment_of(const FailureEvidence& evidence) const {
    DiagnosedMoment moment;
    moment.row = row_;
    moment.seconds = seconds();
    moment.reserved = evidence.usage.reserved;
    moment.allocated = evidence.usage.allocated;
    moment.pinned = evidence.usage.pinned;
    for (std::size_t i = 0; i < evidence.pin_count; ++i) {
      const Pin& pin = evidence.pins[i];
      DiagnosedPin out;
      out.size = pin.size;
      out.pinned = pin.pinned;
      if (const auto origin = origins_.find(pin.address); origin != origins_.end()) {
        out.age_seconds = static_cast<double>(now_ns_ - origin->second.time_ns) / 1e9;
        out.row = origin->second.row;
        out.stream = origin->second.stream;
        out.place = places_[origin->second.place];
      }
      moment.pins.push_back(std::move(out));
    }
    return moment;
  }

  /// Groups what is alive at the end and younger than the first quarter of the trace.
  void find_holders() {
    std::map<std::string, DiagnosedHolder> groups;
    for (const auto& [address, origin] : origins_) {
      if (origin.row <= out_.counts.events / 4) continue;
      std::string place = places_[origin.place];
      if (place.empty()) {
        place =
            "blocks of " + size_text(origin.size) + " on stream " + std::to_string(origin.stream);
      }
      DiagnosedHolder& group = groups[place];
      group.place = place;
      group.bytes += origin.size;
      ++group.blocks;
    }
    for (auto& [place, group] : groups) out_.holders.push_back(std::move(group));
    std::sort(out_.holders.begin(), out_.holders.end(),
              [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    out_.holders.resize(std::min(out_.holders.size(), most_holders));
  }

  EventSource& source_;
  ReplayHeap heap_;
  Diagnosis& out_;
  LowWater low_water_;
  std::unordered_map<Address, Origin> origins_;  // of live blocks
  std::unordered_map<std::string, std::uint32_t> place_of_;
  std::vector<std::string> places_;
  std::uint64_t device_alloc_ = 0;
  std::int64_t start_ns_ = 0;
  std::int64_t now_ns_ = 0;
  std::uint64_t row_ = 0;
  bool started_ = false;
};

}  // namespace

Diagnosis diagnose(const std::string& trace, EventSource& source, const ReplayOptions& options) {
  Diagnosis diagnosis;
  diagnosis.trace = trace;
  diagnosis.policy = options.policy;
  diagnosis.capacity = options.capacity;
  Watcher(source, options, &diagnosis).run();
  return diagnosis;
}

}  // namespace fragshim
