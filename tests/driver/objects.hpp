// The objects a program holds handles of, and the tables in which they are found.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/driver/cuda_api.hpp"
#include "tests/driver/machine.hpp"

namespace standin {

using fragshim::StreamKind;
using fragshim::Work;
using fragshim::WorkClock;

struct Context;
struct Pool;

enum class MemoryKind : std::uint8_t { plain, managed, pool, graph, host, imported };

/// One allocation, or a piece of host memory that the driver knows.
struct Allocation {
  MemoryKind kind = MemoryKind::plain;
  Bytes size = 0;
  std::uint64_t context = 0;  // with which it dies; 0: it does not
  int device = 0;
  Pool* pool = nullptr;
  std::uint64_t buffer_id = 0;
  bool sync_memops = false;
  bool registered = false;  // host memory that is the program's own
};

/// What a capture gathers: the work of a graph in the order in which it was captured.
struct Graph {
  std::vector<Work> nodes;
  std::map<Address, Allocation> allocations;  // by memory nodes, which each launch makes anew
  std::shared_ptr<Graph> source;              // of which this is the executable form
};

/// A capture underway on one or more streams.
struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool spoilt = false;
  std::shared_ptr<Graph> graph;
  bool into_given_graph = false;
};

struct Stream {
  std::uint64_t id = 0;  // its name in the order; never used again
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  StreamKind kind = StreamKind::non_blocking;
  std::shared_ptr<Capture> capture;
  bool capture_origin = false;
};

struct Event {
  Context* context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  WorkClock clock;
  Machine* machine = nullptr;        // on which the clock runs
  std::shared_ptr<Capture> capture;  // recorded into one
  std::chrono::steady_clock::time_point time;
};

struct Context {
  std::uint64_t id = 0;  // a new one each time it comes to life
  Machine* machine = nullptr;
  bool primary = false;
  bool live = false;
  unsigned flags = 0;
  unsigned retained = 0;
  std::shared_ptr<Stream> legacy;
  std::map<std::thread::id, std::shared_ptr<Stream>> per_thread;
};

/// The driver's whole state. Its lock is never held while work is completed.
struct Driver {
  std::mutex mutex;
  std::vector<std::unique_ptr<Machine>> machines;
  std::vector<std::unique_ptr<Context>> contexts;  // never freed: the dead are brought back to life
  std::vector<Context*> primaries;
  std::map<CUstream, std::shared_ptr<Stream>> streams;
  std::map<CUevent, std::shared_ptr<Event>> events;
  std::map<CUgraph, std::shared_ptr<Graph>> graphs;
  std::map<CUgraphExec, std::shared_ptr<Graph>> executables;
  std::map<Address, Allocation> allocations;
  std::map<Address, Bytes> without_access;  // mappings that nothing may touch yet
  // Ranges of other devices that a device may touch.
  std::map<CUdevice, std::map<Address, Bytes>> peer_access;
  std::set<std::shared_ptr<Capture>> captures;
  std::atomic<std::uint64_t> last_id{0};
};

using Lock = std::lock_guard<std::mutex>;

/// Lives until the process is gone. Has no machines before cuInit.
Driver& driver();
std::uint64_t new_id();

/// The allocation that holds an address, and where it begins. Takes the driver's lock as held.
std::map<Address, Allocation>::iterator allocation_of(Address address);

/// Whether the range reaches into a mapping without access. Takes the driver's lock as held.
bool lacks_access(Address address, Bytes size);

/// The machine on which a device's ordinal lies; null for a wrong one.
Machine* machine_of(CUdevice device);
/// The machine whose addresses hold this one; null for a host address.
Machine* machine_at(Address address);

/// The stream a handle means in a context: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or an own one.
/// Null where there is none.
std::shared_ptr<Stream> find_stream(Context& context, CUstream handle, bool per_thread);
std::shared_ptr<Event> find_event(CUevent handle);

}  // namespace standin
