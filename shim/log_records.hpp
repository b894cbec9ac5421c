// The log's records: one function a type, each giving one line of JSON without its line break.
//
// Every record begins with schema (1), type, time (seconds since the epoch, to the microsecond) and
// pid. Those about one heap go on with device (the CUDA ordinal) and heap (stream_ordered or
// synchronous). Sizes are bytes; the names are those of core/record/metrics.hpp. The card's own
// memory is card_free and card_total, since device_alloc and device_free count calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/settings.hpp"
#include "core/record/failure.hpp"
#include "core/record/metrics.hpp"
#include "shim/log.hpp"

namespace fragshim::log {

inline constexpr int schema_version = 1;

/// When and where a record was made.
struct Stamp {
  std::int64_t time_us = 0;  // since the epoch
  int pid = 0;
};

/// What the start record says of the process beside its settings.
struct ProcessFacts {
  std::string program;  // the name only: arguments may hold secrets
  std::string host;
  std::string rank;
};

/// What a heap looked like at one moment.
struct HeapSample {
  int device = 0;
  HeapKind kind = HeapKind::synchronous;
  Usage usage;
  std::uint64_t device_time_us = 0;
};

/// Memory that is no heap's.
struct Surroundings {
  Bytes card_free = 0;
  Bytes card_total = 0;  // 0: the driver could not be asked; both are left out then
  Bytes managed = 0;
  Bytes host = 0;
};

std::string start_record(const Stamp& stamp, const ProcessFacts& process, const DeviceInfo& device,
                         const Settings& settings);
std::string sample_record(const Stamp& stamp, const HeapSample& sample,
                          const Surroundings& surroundings);
/// `skipped`: like records that were left out since the last one of this type.
std::string oom_record(const Stamp& stamp, const FailureReport& report, const Failure& failure,
                       std::uint64_t skipped);
std::string retry_record(const Stamp& stamp, const RetryReport& report, std::uint64_t skipped);
std::string trim_record(const Stamp& stamp, const TrimReport& report, std::uint64_t skipped);
std::string warning_record(const Stamp& stamp, std::string_view code, std::string_view text);
/// The last record of a heap: its peaks and totals over the whole process. `seconds`: since the
/// start record.
std::string exit_record(const Stamp& stamp, const HeapSample& total, double seconds);

}  // namespace fragshim::log
