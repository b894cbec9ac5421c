#include "core/analyze/snapshot_events.hpp"

#include <algorithm>

#include "core/analyze/input_error.hpp"

namespace fragshim {

namespace {

constexpr int most_devices = 4096;

bool takes_memory(std::string_view action) {
  return action == "segment_alloc" || action == "segment_map";
}

bool gives_memory(std::string_view action) {
  return action == "segment_free" || action == "segment_unmap";
}

}  // namespace

SnapshotEvents::SnapshotEvents(ByteStream input, std::optional<int> device)
    : data_(PickleData::read(std::move(input))) {
  if (!data_.find(data_.root(), "segments")) {
    throw InputError(data_.name() + ": no PyTorch memory snapshot: it has no 'segments'");
  }
  choose_device(device);
  if (const auto settings = data_.find(data_.root(), "allocator_settings")) {
    const auto conf = data_.find(*settings, "PYTORCH_CUDA_ALLOC_CONF");
    if (conf) state_.conf = data_.text(*conf).value_or("");
  }
  read_segments();
  read_trace();
  add_blocks_alive_before();
}

std::int64_t SnapshotEvents::integer_of(Id owner, std::string_view key) const {
  const auto id = data_.find(owner, key);
  return id ? data_.integer(*id).value_or(0) : 0;
}

SnapshotEvents::Id SnapshotEvents::frames_of(Id owner) const {
  const auto id = data_.find(owner, "frames");
  return id && !data_.items(*id).empty() ? *id : no_frames;
}

std::size_t SnapshotEvents::events_of(int device) const {
  const auto traces = data_.find(data_.root(), "device_traces");
  if (!traces) return 0;
  const auto all = data_.items(*traces);
  const auto index = static_cast<std::size_t>(device);
  return index < all.size() ? data_.items(all[index]).size() : 0;
}

/// Of devices without events the one that holds the most is taken.
void SnapshotEvents::choose_device(std::optional<int> wanted) {
  std::unordered_map<int, Bytes> reserved;
  const Id segments = *data_.find(data_.root(), "segments");
  for (const Id segment : data_.items(segments)) {
    const std::int64_t device = integer_of(segment, "device");
    if (device < 0 || device >= most_devices) throw InputError(data_.name() + ": a bad device");
    reserved[static_cast<int>(device)] += static_cast<Bytes>(integer_of(segment, "total_size"));
  }
  const auto traces = data_.find(data_.root(), "device_traces");
  const std::size_t count = traces ? data_.items(*traces).size() : 0;
  std::string known;
  std::pair<std::size_t, Bytes> most{0, 0};
  for (int device = 0; device < most_devices; ++device) {
    const std::pair<std::size_t, Bytes> weight{events_of(device), reserved[device]};
    if (weight.first == 0 && weight.second == 0) continue;
    known += (known.empty() ? "" : ", ") + std::to_string(device);
    if (weight <= most) continue;
    most = weight;
    device_ = device;
  }
  if (wanted) {
    if (*wanted < 0 || (events_of(*wanted) == 0 && reserved[*wanted] == 0)) {
      throw InputError(data_.name() + ": nothing of device " + std::to_string(*wanted) +
                       (known.empty() ? "" : "; it has " + known));
    }
    device_ = *wanted;
  }
  if (static_cast<std::size_t>(device_) < count) {
    trace_ = data_.items(*traces)[static_cast<std::size_t>(device_)];
  }
}

void SnapshotEvents::read_segments() {
  const Id segments = *data_.find(data_.root(), "segments");
  for (const Id segment : data_.items(segments)) {
    if (integer_of(segment, "device") != device_) continue;
    state_.reserved += static_cast<Bytes>(integer_of(segment, "total_size"));
    read_blocks(segment);
  }
}

void SnapshotEvents::read_blocks(Id segment) {
  const auto blocks = data_.find(segment, "blocks");
  if (!blocks) return;
  auto address = static_cast<Address>(integer_of(segment, "address"));
  const auto stream = static_cast<StreamId>(integer_of(segment, "stream"));
  for (const Id block : data_.items(*blocks)) {
    // Lists may be shared in a crafted file; in a real one each block takes bytes of its own.
    if (++blocks_read_ > data_.bytes()) throw InputError(data_.name() + ": blocks without end");
    const auto size = static_cast<Bytes>(integer_of(block, "size"));
    const auto own = static_cast<Address>(integer_of(block, "address"));
    if (own != 0) address = own;  // older snapshots leave it out
    const auto state = data_.find(block, "state");
    if (state && data_.text(*state).value_or("").starts_with("active")) {
      const auto requested = static_cast<Bytes>(integer_of(block, "requested_size"));
      at_end_[address] = {requested == 0 ? size : requested, stream, frames_of(block)};
    }
    address += size;
  }
}

SnapshotEvents::Entry SnapshotEvents::read_entry(Id id) const {
  Entry entry;
  const auto action = data_.find(id, "action");
  if (!action || !data_.text(*action)) throw InputError(data_.name() + ": an event without action");
  entry.action = *data_.text(*action);
  entry.frames = frames_of(id);
  entry.event.address = static_cast<Address>(integer_of(id, "addr"));
  entry.event.size = static_cast<Bytes>(integer_of(id, "size"));
  entry.event.stream = static_cast<StreamId>(integer_of(id, "stream"));
  const auto us = static_cast<std::uint64_t>(integer_of(id, "time_us"));
  entry.event.time_ns = static_cast<std::int64_t>(us * 1000);
  return entry;
}

void SnapshotEvents::read_trace() {
  if (trace_ == no_frames) return;
  const auto ids = data_.items(trace_);
  std::vector<Entry> entries;
  entries.reserve(ids.size());
  for (const Id id : ids) entries.push_back(read_entry(id));
  const std::vector<bool> trims = find_trims(entries);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (trims[i]) {
      Event trim;
      trim.action = Action::trim;
      trim.time_ns = entries[i].event.time_ns;
      recorded_.push_back({trim, entries[i].frames});
    }
    read_action(entries[i]);
  }
}

void SnapshotEvents::read_action(const Entry& entry) {
  Event event = entry.event;
  if (entry.action == "alloc") {
    event.action = Action::allocate;
    live_.insert(event.address);
    touched_.insert(event.address);
  } else if (entry.action == "free_completed") {
    event.action = Action::free;
    live_.erase(event.address);
    if (touched_.insert(event.address).second) {
      Event allocation = event;
      allocation.action = Action::allocate;
      before_.push_back({allocation, no_frames});
    }
  } else if (entry.action == "oom") {
    event.action = Action::allocate_failure;
    event.address = 0;
  } else {
    return;
  }
  recorded_.push_back({event, entry.frames});
}

/// Which entries begin an emptying of the cache that the program asked for. A request that does not
/// fit empties it, too, and takes memory next; but that is not part of the trace, as another
/// allocator need not do it. It is told by the sum: it would have been more than was ever held.
std::vector<bool> SnapshotEvents::find_trims(const std::vector<Entry>& entries) const {
  std::vector<Bytes> held(entries.size() + 1);  // before each entry; less what was there at first
  for (std::size_t i = 0; i < entries.size(); ++i) {
    held[i + 1] = held[i];
    if (takes_memory(entries[i].action)) held[i + 1] += entries[i].event.size;
    if (gives_memory(entries[i].action)) held[i + 1] -= entries[i].event.size;
  }
  const Bytes at_first = state_.reserved - held.back();
  for (Bytes& sum : held) sum += at_first;
  const Bytes most = *std::max_element(held.begin(), held.end());
  std::vector<bool> trims(entries.size());
  for (std::size_t i = 0; i < entries.size();) {
    const std::size_t begin = i;
    while (i < entries.size() && gives_memory(entries[i].action)) ++i;
    if (i == begin) {
      ++i;
      continue;
    }
    const bool pressed =
        i < entries.size() &&
        (entries[i].action == "oom" ||
         (takes_memory(entries[i].action) && held[begin] + entries[i].event.size > most));
    trims[begin] = !pressed;
  }
  return trims;
}

/// Blocks freed without an allocation, and those in use that were never allocated in the trace.
void SnapshotEvents::add_blocks_alive_before() {
  for (const auto& [address, block] : at_end_) {
    if (touched_.count(address) != 0) continue;
    Event event;
    event.action = Action::allocate;
    event.address = address;
    event.size = block.size;
    event.stream = block.stream;
    before_.push_back({event, block.frames});
  }
  std::sort(before_.begin(), before_.end(),
            [](const Recorded& a, const Recorded& b) { return a.event.address < b.event.address; });
  const std::int64_t start = recorded_.empty() ? 0 : recorded_.front().event.time_ns;
  for (Recorded& one : before_) one.event.time_ns = start;
  state_.alive_before = before_.size();
}

bool SnapshotEvents::next(Event* event) {
  if (next_ == before_.size() + recorded_.size()) return false;
  *event = (next_ < before_.size() ? before_[next_] : recorded_[next_ - before_.size()]).event;
  ++next_;
  return true;
}

std::vector<CodeFrame> SnapshotEvents::stack() const {
  if (next_ == 0) return {};
  const std::size_t last = next_ - 1;
  const Id frames =
      (last < before_.size() ? before_[last] : recorded_[last - before_.size()]).frames;
  std::vector<CodeFrame> out;
  if (frames == no_frames) return out;
  for (const Id frame : data_.items(frames)) {
    const auto name = data_.find(frame, "name");
    const auto file = data_.find(frame, "filename");
    out.push_back({name ? data_.text(*name).value_or("") : "",
                   file ? data_.text(*file).value_or("") : "", integer_of(frame, "line")});
  }
  return out;
}

}  // namespace fragshim
