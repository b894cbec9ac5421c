// What the tests of the log share: settings that a test may set, a process of its own for each
// case, and a heap that is what it is told to be.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "shim/log.hpp"

namespace fragshim::test {

/// What settings() gives in this program.
Settings& mutable_settings();
/// The defaults, but for this log and an interval of a millisecond.
void begin_with(const std::string& pattern);
/// Longer than that interval, and than the coarsest clock's tick.
void wait_for_interval();

/// An empty folder, gone with its contents when the object is.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }
  /// Names in the folder, sorted.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

struct ChildResult {
  int exit_status = -1;  // 128 + signal where one ended it
  std::string standard_error;
};

/// Runs `body` in a forked child with a fresh log: the log is one of a process.
ChildResult in_child(const std::function<void()>& body);

/// The lines of a file, the last one also where it is not finished.
std::vector<std::string> lines_of(const std::string& path);

using Types = std::vector<std::string>;
/// The types of a log's records in order; every line must be JSON.
Types types_of(const std::string& path);

class FixedHeap final : public Heap {
 public:
  Usage state;

  Grant allocate(Bytes, StreamId) noexcept override { return {0, {Outcome::out_of_memory, 0}}; }
  Status free(Address, StreamId) noexcept override { return {Outcome::not_owned, 0}; }
  Bytes trim(Bytes) noexcept override { return 0; }
  bool contains(Address) const noexcept override { return false; }
  void reset_peaks(bool, bool) noexcept override {}
  Counters counters() const noexcept override { return state; }
  Usage usage() const noexcept override { return state; }
  void walk(BlockVisitor&) const override {}
  bool check(std::string*) const override { return true; }
};

/// One heap of each kind on device 0, and a card of 80 GiB.
class FixedSource final : public log::HeapSource {
 public:
  FixedHeap synchronous;
  FixedHeap stream_ordered;

  void each_heap(log::HeapVisitor& visitor) noexcept override {
    visitor.visit({0, log::HeapKind::synchronous, &synchronous, 11});
    visitor.visit({0, log::HeapKind::stream_ordered, &stream_ordered, 22});
  }
  bool memory_info(int, Bytes* free, Bytes* total) noexcept override {
    *free = 70 * GiB;
    *total = 80 * GiB;
    return true;
  }
  Bytes managed_bytes() noexcept override { return 5; }
};

/// The device of FixedSource.
log::DeviceInfo fixed_device();

}  // namespace fragshim::test
