// What the logs of one or several processes add up to.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/analyze/byte_stream.hpp"
#include "core/analyze/low_water.hpp"
#include "core/types.hpp"

namespace fragshim {

/// One heap over the whole of a log. Sizes in bytes; peaks and counts are the highest seen, so that
/// a log without its end tells what it can.
struct HeapReport {
  Bytes requested_peak = 0;
  Bytes allocated_peak = 0;
  Bytes reserved_peak = 0;
  Bytes pinned_peak = 0;
  Bytes requested_end = 0;
  Bytes allocated_end = 0;
  Bytes reserved_end = 0;
  std::uint64_t allocations = 0;
  std::uint64_t device_alloc = 0;
  std::uint64_t device_free = 0;
  std::uint64_t device_time_us = 0;
  std::uint64_t retries = 0;
  std::uint64_t trims = 0;
  std::uint64_t ooms = 0;
  std::uint64_t waits = 0;
  std::uint64_t stitches = 0;
  LowWater low_water;  // of requested

  /// Peak allocated by peak reserved; 1 where nothing was reserved.
  double utilisation() const;
};

/// A request that failed, with the evidence of its record.
struct FailureReport {
  double seconds = 0;  // since the log's first record
  int device = 0;
  std::string heap;
  std::string cause;  // the class
  Bytes request = 0;
  Bytes capacity = 0;
  Bytes available = 0;
  Bytes shortfall = 0;
  Bytes largest_reachable = 0;
  Bytes largest_bound = 0;
  Bytes reserved = 0;
  Bytes allocated = 0;
  Bytes pinned = 0;
  std::string worst_pin;  // address of the live block that pins the most; empty: none
  Bytes worst_pin_size = 0;
  Bytes worst_pin_pinned = 0;
};

struct SettingReport {
  std::string name;
  std::string value;
  std::string source;
};

struct WarningReport {
  std::string code;
  std::string text;
  std::uint64_t count = 0;
};

/// One process: what one log file tells.
struct ProcessReport {
  using HeapKey = std::pair<int, std::string>;  // device, kind

  std::string path;
  std::string program;
  std::string host;
  std::string rank;  // empty: none
  std::string version;
  std::int64_t pid = 0;
  double begin = 0;  // seconds since the epoch
  double end = 0;
  bool ended = false;                                    // there is an exit record
  std::map<int, std::pair<std::string, Bytes>> devices;  // ordinal → name, bytes on the card
  std::vector<SettingReport> settings;                   // those that are not default
  std::map<HeapKey, HeapReport> heaps;
  std::map<std::string, std::uint64_t> failure_classes;  // records of each class
  std::vector<FailureReport> failures;                   // the first ones, at most most_failures
  std::vector<WarningReport> warnings;
  std::uint64_t records = 0;
  std::uint64_t bad_lines = 0;
  bool truncated = false;  // the last line is cut off

  static constexpr std::size_t most_failures = 100;

  /// The heaps' sums; `low_water` is left out.
  HeapReport total() const;
};

/// Reads one log, plain or packed. Lines that are no record of ours are counted, fields that are
/// missing are zero. Throws InputError where the file cannot be read.
ProcessReport read_log(ByteStream input);

/// Reports for people: processes by rank, and their total if there are several.
std::string report_text(const std::vector<ProcessReport>& processes);

/// The same as one JSON object.
nlohmann::ordered_json report_json(const std::vector<ProcessReport>& processes);

}  // namespace fragshim
