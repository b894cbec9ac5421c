// The log of one process: JSON Lines on a file, one line at once, and a summary on stderr at exit.
// Nothing is created before the process really uses CUDA. No call here throws, takes a thread, or
// lets an error of the log reach the program: the first one is told on stderr, then the log is off.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/alloc/heap.hpp"
#include "core/record/failure.hpp"
#include "core/types.hpp"

namespace fragshim::log {

/// Which door a heap serves; the log's `heap` field.
enum class HeapKind : std::uint8_t { synchronous, stream_ordered };
std::string_view name(HeapKind kind) noexcept;

/// One GPU of this process, as the start record shows it.
struct DeviceInfo {
  int device = 0;    // the CUDA ordinal
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-…", or empty
  Bytes total_memory = 0;
  int driver_version = 0;  // as cuDriverGetVersion gives it: 13000
};

/// One heap of the process as the log sees it; valid during the visit only.
struct HeapView {
  int device = 0;
  HeapKind kind = HeapKind::synchronous;
  const Heap* heap = nullptr;
  std::uint64_t device_time_us = 0;  // spent in the driver's memory calls, where metered
};

class HeapVisitor {
 public:
  virtual ~HeapVisitor() = default;
  virtual void visit(const HeapView& view) noexcept = 0;
};

/// Where samples come from: the contexts registry implements it. Called from any thread, with no
/// lock of the log held; during exit too, so it must outlive static destructors.
class HeapSource {
 public:
  virtual ~HeapSource() = default;
  /// Shows every heap alive, in the order of devices, then kinds.
  virtual void each_heap(HeapVisitor& visitor) noexcept = 0;
  /// Bytes free on and total of the card, from the driver; false where it cannot be asked now
  /// (a capture is underway, no context). Called once a sample and device.
  virtual bool memory_info(int device, Bytes* free, Bytes* total) noexcept = 0;
  /// Memory that passes through: managed and pinned host memory, alive.
  virtual Bytes managed_bytes() noexcept { return 0; }
  virtual Bytes host_bytes() noexcept { return 0; }
};

/// A request that no heap could serve; becomes an `oom` record with its class.
struct FailureReport {
  int device = 0;
  HeapKind kind = HeapKind::synchronous;
  StreamId stream = 0;
  FailureEvidence evidence;  // core/record/failure.hpp: gather_evidence() fills most of it
};

/// An allocation that succeeded only after cached memory had been given back.
struct RetryReport {
  int device = 0;
  HeapKind kind = HeapKind::synchronous;
  StreamId stream = 0;
  Bytes request = 0;
  Bytes reserved = 0;  // after it
};

/// The cache emptied on request (cuMemPoolTrimTo, empty_cache).
struct TrimReport {
  int device = 0;
  HeapKind kind = HeapKind::stream_ordered;
  Bytes keep = 0;      // what the program wanted kept
  Bytes released = 0;  // what went back
  Bytes reserved = 0;  // after it
};

/// Gives the log its heaps; once, before start(). The source is never freed.
void set_source(HeapSource* source) noexcept;

/// The first successful allocation on a device: opens the file and writes the start record.
/// Idempotent (one start record a device). False where the host has no memory for it: try again.
bool start(const DeviceInfo& device) noexcept;

/// A heap is about to go (its context is destroyed or reset): keeps its totals for the exit record
/// and writes a last sample. The heap must still answer usage().
void heap_closing(const HeapView& view) noexcept;

/// Writes samples when the interval has passed. Reads a coarse clock; else nothing.
void sample_if_due() noexcept;

namespace detail {
inline constexpr std::uint32_t operations_per_look = 32;
inline constinit thread_local std::uint32_t operations = 0;
}  // namespace detail

/// One more operation through a door: every 32nd one of a thread looks at the clock.
/// Call it with no lock held. Doors that talked to the driver may call sample_if_due() instead.
inline void tick() noexcept {
  if (++detail::operations % detail::operations_per_look == 0) sample_if_due();
}

void failure(const FailureReport& report) noexcept;
void retry(const RetryReport& report) noexcept;
void trim(const TrimReport& report) noexcept;

/// Something the user should know, once per code: a line on stderr and a `warning` record (kept
/// until the log opens, if it ever does). `code` is a short fixed word such as "ipc_interior".
void warning(std::string_view code, std::string_view text) noexcept;

/// A message for FRAGSHIM_VERBOSE alone: a line on stderr; nothing is formatted when it is off.
void note(std::string_view text) noexcept;
bool verbose() noexcept;

/// The exit records, and the summary on stderr. Once; later calls do nothing. A process that
/// never used CUDA writes and prints nothing.
void finish() noexcept;

/// In a forked child: forget the parent's file, heaps and totals; the child opens a file of its
/// own if it ever uses CUDA.
void after_fork_in_child() noexcept;

}  // namespace fragshim::log
