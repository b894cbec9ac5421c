// Order on the simulated device: streams of submitted work that stays pending until somebody waits
// for it, fences between them, and the hazards of memory that is touched out of order.
//
// Every stream knows, as a vector clock, which work of other streams comes before whatever is
// submitted to it next. Two pieces of work that touch the same physical byte, of which neither is
// ordered before the other, are a hazard: on a real device the outcome would be left to chance.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/device.hpp"

namespace fragshim {

enum class StreamKind : std::uint8_t {
  non_blocking,  // ordered by fences alone
  blocking,      // waits for the legacy stream, and the legacy stream for it
  legacy,        // CUDA's legacy default stream
};
enum class Access : std::uint8_t { read, write };

/// A stretch of memory that a piece of work reads or writes.
struct Touch {
  Address address = 0;   // as the program names it
  Address physical = 0;  // the first byte's number on the device: what aliases are told by
  Bytes size = 0;
  Access access = Access::write;
};

/// One piece of submitted work.
struct Work {
  std::vector<Touch> touches;
  std::function<void()> run;    // done at completion, with no lock held; may block; may be empty
  std::function<bool()> ready;  // empty: it can always run without blocking
};

/// A point in the work of several streams: for each the number of the last piece before the point.
using WorkClock = std::map<StreamId, std::uint64_t>;

class WorkOrder {
 public:
  /// Streams of one group (a CUDA context) can be fenced and awaited together.
  using Group = std::uint64_t;
  using Report = std::function<void(const std::string&)>;

  /// Makes a stream known. One that is never made known is non_blocking and in group 0.
  void add_stream(StreamId stream, StreamKind kind, Group group = 0);
  /// Forgets a stream; its work still completes.
  void remove_stream(StreamId stream);

  void submit(StreamId stream, Work work);
  /// The present end of a stream's work, with all that comes before it.
  WorkClock record(StreamId stream);
  WorkClock record_group(Group group);
  WorkClock record_all();
  bool passed(const WorkClock& clock) const;
  /// Later work on `stream` comes after `clock`.
  void order_after(StreamId stream, const WorkClock& clock);

  /// Completes, in order, everything up to the point; runs it on the calling thread.
  void complete(const WorkClock& clock);
  /// Completes the oldest pending piece of a stream and what it depends on. False: none is pending.
  bool complete_one(StreamId stream);
  /// Completes what was submitted at least `age` ago, can run without blocking and whose
  /// predecessors are done: what a real device would have got done by itself.
  void poll(std::chrono::milliseconds age);

  /// A hazard that the caller found: `what`, by work of `stream` on a range.
  void expose(const char* what, StreamId stream, Address address, Bytes size);
  /// Memory at [address, address + size) is about to go: pending work on it is a hazard.
  void expect_idle(Address address, Bytes size, const char* what);

  std::size_t pending() const;
  std::uint64_t hazards() const;
  std::string first_hazard() const;  // empty if there was none
  void forget_hazards();
  /// Called at every hazard, with the order's lock held.
  void report_to(Report report);

 private:
  struct Item;
  struct Entry {
    const Touch* touch;
    Item* item;
  };
  /// Pending touches by where they begin.
  struct Index {
    std::multimap<Address, Entry> entries;
    Bytes longest = 0;
  };
  struct Item {
    StreamId stream = 0;
    std::uint64_t number = 0;
    Work work;
    WorkClock after;
    std::chrono::steady_clock::time_point submitted;
    bool running = false;
    std::vector<std::multimap<Address, Entry>::iterator> by_address;
    std::vector<std::multimap<Address, Entry>::iterator> by_physical;
  };
  struct Stream {
    StreamKind kind = StreamKind::non_blocking;
    Group group = 0;
    bool removed = false;
    std::uint64_t submitted = 0;  // number of the last piece; numbers grow over all streams
    std::uint64_t completed = 0;
    WorkClock after;
    std::deque<std::unique_ptr<Item>> pending;
  };
  using Lock = std::unique_lock<std::mutex>;

  Stream& stream_of(StreamId stream);
  bool done(StreamId stream, std::uint64_t number) const;
  bool passed_locked(const WorkClock& clock) const;
  void join(WorkClock* into, const WorkClock& from) const;
  void join_end(WorkClock* into, StreamId id, const Stream& stream) const;
  void order_legacy(StreamId id, Stream& stream);
  WorkClock record_where(Group group, bool every);
  void check(const Item& item);
  void enter(Item* item);
  Item* runnable(const WorkClock& clock) const;
  void execute(Lock& lock, Item* item);
  void leave(Item* item);
  void report(const std::string& text);

  mutable std::mutex mutex_;
  std::condition_variable progress_;
  std::uint64_t last_number_ = 0;
  std::size_t pending_ = 0;
  std::map<StreamId, Stream> streams_;
  Index by_address_;
  Index by_physical_;
  std::uint64_t hazards_ = 0;
  std::string first_hazard_;
  Report report_;
};

}  // namespace fragshim
