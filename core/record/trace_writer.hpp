// Writes the binary trace from inside the program that is traced: no lock, no allocation, and a
// file that is readable however the process ends.
#pragma once

#include <atomic>

#include "core/device/device.hpp"
#include "core/record/event.hpp"
#include "core/record/own_file.hpp"
#include "core/record/trace_format.hpp"

namespace fragshim {

/// Appends records through a mapping of the file. The whole of the addresses a trace may ever need
/// is mapped once; the file grows under it by windows of 1 MiB, each made sure of on the disk
/// before the first record goes there, so that a full disk ends the trace and not the program.
/// Any number of threads may append at once.
class TraceWriter {
 public:
  /// Called once, from whichever thread is stopped by it, with errno's value. Must not throw.
  using StopCallback = void (*)(int error) noexcept;

  TraceWriter() = default;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  /// Closes and unmaps: nobody may append any more.
  ~TraceWriter();

  /// Creates the file, as create_own_file does. Of the header, `pid` and `realtime_ns` are filled
  /// in here. `on_stop` hears of it when the trace has to end early. Fails with errno's value as
  /// the code. Once only.
  Status open(const char* path, TraceHeader header, StopCallback on_stop = nullptr) noexcept;

  /// Adds an event. Does nothing unless open. Append a free before it is carried out: another
  /// thread's allocation of the same address must come after it.
  void append(const Event& event) noexcept;

  /// Ends the trace and cuts the file to what was written. Appends of other threads may go on
  /// meanwhile; they are dropped.
  void close() noexcept;

  /// In a forked child: leaves the parent's file alone, drops every later append.
  void abandon() noexcept;

  /// The file's name as it was created; empty before.
  const char* path() const noexcept { return path_; }

 private:
  static constexpr std::uint64_t window = MiB / sizeof(TraceRecord);  // in records
  static constexpr std::uint64_t closed = std::uint64_t{1} << 62;     // no index is as high

  int map() noexcept;
  void note_door(std::uint32_t bit) noexcept;
  bool prepare(std::uint64_t end) noexcept;
  void forget_before(Bytes offset) noexcept;
  bool finish() noexcept;
  void stop(int error) noexcept;

  std::atomic<std::uint64_t> next_{closed};  // the next record's index; `closed` or more: dropped
  std::atomic<std::uint64_t> ready_{0};      // records below it have room in the file
  std::atomic<std::uint32_t> doors_{0};      // as in the header
  std::uint64_t limit_ = 0;                  // records that fit the mapping
  std::int64_t start_ns_ = 0;
  char* mapping_ = nullptr;
  Bytes mapped_ = 0;
  StopCallback on_stop_ = nullptr;
  int file_ = -1;  // stays open until the end: a thread may be extending it while we close
  FileIdentity identity_;
  char path_[PATH_MAX] = {};
};

}  // namespace fragshim
