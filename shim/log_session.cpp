#include "shim/log_session.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "config/environment.hpp"
#include "config/file_pattern.hpp"
#include "shim/process.hpp"

namespace fragshim::log {
namespace {

Stamp stamp_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return {std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000, static_cast<int>(getpid())};
}

/// What intervals are measured by: the clock of the stamps may be set back or forth.
std::int64_t steady_now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

ProcessFacts process_facts() {
  const ProcessEnvironment environment;
  return {program_invocation_short_name, host_name(), process_rank(environment)};
}

/// One colour, only where a person reads: https://no-color.org.
bool stderr_has_colour() noexcept {
  const char* const refused = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) == 1 && (!refused || *refused == '\0');
}

/// Takes down every heap of a source, those of one device and kind as one.
class Collector final : public HeapVisitor {
 public:
  void visit(const HeapView& view) noexcept override {
    try {
      add_sample(samples, {view.device, view.kind, view.heap->usage(), view.device_time_us});
    } catch (...) {
      // Out of host memory: this heap is missing in this sample.
    }
  }
  std::vector<HeapSample> samples;
};

std::vector<HeapSample> collect(HeapSource& source) {
  Collector collector;
  source.each_heap(collector);
  return std::move(collector.samples);
}

std::uint64_t device_bit(int device) noexcept {
  return std::uint64_t{1} << (static_cast<unsigned>(device) % 64);
}

/// The file can take no more: said once, by the logger, which then stays silent.
void write_failed(int error) noexcept {
  char reason[128];
  char line[256];
  std::snprintf(line, sizeof line, "fragshim: cannot write the log: %s; it ends here",
                strerror_r(error, reason, sizeof reason));
  write_stderr(line);
}

}  // namespace

std::optional<std::uint64_t> RecordRate::admit(std::int64_t now_ns, std::int64_t interval_ns) {
  if (written_ >= burst && now_ns - last_ns_ < interval_ns) {
    ++skipped_;
    return std::nullopt;
  }
  ++written_;
  last_ns_ = now_ns;
  return std::exchange(skipped_, 0);
}

bool Session::has_started(int device) const noexcept {
  return (started_.load(std::memory_order_acquire) & device_bit(device)) != 0;
}

/// Throws before anything has begun, or not at all: a later call can begin anew.
void Session::start(const DeviceInfo& device) {
  const Stamp stamp = stamp_now();
  std::vector<std::string> records{start_record(stamp, process_facts(), device, settings())};
  std::string problem;
  {
    const Lock lock(mutex_);
    if (has_started(device.device) || finished()) return;
    for (const auto& [code, text] : early_warnings_) {
      records.push_back(warning_record(stamp, code, text));
    }
    if (!opened_) problem = open();
    early_warnings_.clear();
    started_.fetch_or(device_bit(device.device), std::memory_order_acq_rel);
  }
  for (const std::string& record : records) write(record);
  if (!problem.empty()) say(problem);
}

/// With the lock held: creates the file. Returns what there is to tell the user.
std::string Session::open() {
  std::string problem;
  if (!settings().log.empty()) {
    OpenedFile file = create_log_file(expand_file_pattern(settings().log, ProcessEnvironment{}));
    if (file.descriptor >= 0) {
      LineLogger* const logger = LineLogger::create(file.descriptor, &write_failed);
      if (logger == nullptr) {
        unlink(file.path.c_str());
        throw std::bad_alloc();
      }
      path_ = std::move(file.path);
      logger_.store(logger, std::memory_order_release);
    } else {
      problem = std::move(file.problem);
    }
  }
  start_ns_ = steady_now_ns();
  opened_ = true;
  return problem;
}

void Session::write(const std::string& line) noexcept {
  if (LineLogger* const logger = logger_.load(std::memory_order_acquire)) logger->write(line);
  if (settings().verbose) say(line);
}

void Session::observe(const std::vector<HeapSample>& samples) {
  const Lock lock(mutex_);
  for (const HeapSample& sample : samples) totals_.observe(sample);
}

void Session::sample(HeapSource& source) {
  const std::vector<HeapSample> samples = collect(source);
  observe(samples);
  if (!logger_.load(std::memory_order_acquire)) return;
  Surroundings around{0, 0, source.managed_bytes(), source.host_bytes()};
  int asked = -1;
  for (const HeapSample& sample : samples) {
    if (sample.device != asked) {
      asked = sample.device;
      if (!source.memory_info(asked, &around.card_free, &around.card_total)) {
        around.card_free = around.card_total = 0;
      }
    }
    write(sample_record(stamp_now(), sample, around));
  }
}

void Session::retire(const HeapView& view) {
  const HeapSample last{view.device, view.kind, view.heap->usage(), view.device_time_us};
  {
    const Lock lock(mutex_);
    totals_.observe(last);
    totals_.retire(last);
  }
  if (started_.load() != 0) write(sample_record(stamp_now(), last, Surroundings{}));
}

std::optional<std::uint64_t> Session::admit(RecordRate& rate) {
  const Lock lock(mutex_);
  return rate.admit(steady_now_ns(), std::int64_t{settings().log_interval_ms} * 1'000'000);
}

void Session::failure(const FailureReport& report) {
  const Failure failure = classify(report.evidence);
  {
    const Lock lock(mutex_);
    ++failures_[static_cast<std::size_t>(failure.cause)];
    totals_.observe({report.device, report.kind, report.evidence.usage, 0});
  }
  const auto skipped = admit(failure_rate_);
  if (skipped) write(oom_record(stamp_now(), report, failure, *skipped));
}

void Session::retry(const RetryReport& report) {
  const auto skipped = admit(retry_rate_);
  if (skipped) write(retry_record(stamp_now(), report, *skipped));
}

void Session::trim(const TrimReport& report) {
  const auto skipped = admit(trim_rate_);
  if (skipped) write(trim_record(stamp_now(), report, *skipped));
}

void Session::warning(std::string_view code, std::string_view text) {
  bool early = false;
  {
    const Lock lock(mutex_);
    const auto said = std::find(warning_codes_.begin(), warning_codes_.end(), code);
    if (said != warning_codes_.end()) return;
    early = !opened_;
    if (early) early_warnings_.emplace_back(code, text);
    warning_codes_.emplace_back(code);
  }
  say(text);
  if (early) return;
  LineLogger* const logger = logger_.load(std::memory_order_acquire);
  if (logger) logger->write(warning_record(stamp_now(), code, text));
}

double Session::seconds_open() const noexcept {
  return static_cast<double>(steady_now_ns() - start_ns_) / 1e9;
}

void Session::write_exit_records(const std::vector<HeapTotal>& totals) {
  const Stamp stamp = stamp_now();
  const double seconds = seconds_open();
  for (const HeapTotal& total : totals) write(exit_record(stamp, total.sample, seconds));
}

SummaryFacts Session::summary_facts(std::vector<HeapTotal> totals) {
  SummaryFacts facts;
  facts.program = program_invocation_short_name;
  facts.pid = static_cast<int>(getpid());
  facts.seconds = seconds_open();
  facts.heaps = std::move(totals);
  facts.colour = stderr_has_colour();
  const Lock lock(mutex_);
  facts.failures = failures_;
  facts.warnings = warning_codes_.size();
  facts.log_path = path_;
  return facts;
}

void Session::finish(HeapSource* source) {
  if (started_.load() == 0 || finished_.exchange(true)) return;
  const std::vector<HeapSample> now = source ? collect(*source) : std::vector<HeapSample>{};
  observe(now);
  std::vector<HeapTotal> totals;
  {
    const Lock lock(mutex_);
    totals = totals_.all(now);
  }
  write_exit_records(totals);
  if (settings().quiet) return;
  for (const std::string& line : summary_lines(summary_facts(std::move(totals)))) {
    write_stderr(line);
  }
}

}  // namespace fragshim::log
