#include "core/device/simulated_order.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fragshim {
namespace {

std::string text_of(StreamId stream, const Touch& touch) {
  char text[128];
  std::snprintf(text, sizeof text, "stream 0x%llx on [0x%llx, +%llu)",
                static_cast<unsigned long long>(stream),
                static_cast<unsigned long long>(touch.address),
                static_cast<unsigned long long>(touch.size));
  return text;
}

}  // namespace

void WorkOrder::add_stream(StreamId stream, StreamKind kind, Group group) {
  const Lock lock(mutex_);
  Stream& state = stream_of(stream);
  state.kind = kind;
  state.group = group;
  state.removed = false;
}

void WorkOrder::remove_stream(StreamId stream) {
  const Lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second.removed = true;
  if (found->second.pending.empty()) streams_.erase(found);
}

WorkOrder::Stream& WorkOrder::stream_of(StreamId stream) {
  const auto [found, fresh] = streams_.try_emplace(stream);
  // Whatever an earlier stream of that name did is over.
  if (fresh) found->second.submitted = found->second.completed = last_number_;
  return found->second;
}

bool WorkOrder::done(StreamId stream, std::uint64_t number) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() || found->second.completed >= number;
}

bool WorkOrder::passed_locked(const WorkClock& clock) const {
  return std::all_of(clock.begin(), clock.end(),
                     [this](const auto& point) { return done(point.first, point.second); });
}

bool WorkOrder::passed(const WorkClock& clock) const {
  const Lock lock(mutex_);
  return passed_locked(clock);
}

/// Takes over what is not done yet; done work orders nothing any more.
void WorkOrder::join(WorkClock* into, const WorkClock& from) const {
  for (const auto& [stream, number] : from) {
    if (done(stream, number)) continue;
    std::uint64_t& known = (*into)[stream];
    known = std::max(known, number);
  }
}

void WorkOrder::join_end(WorkClock* into, StreamId id, const Stream& stream) const {
  join(into, stream.after);
  if (stream.pending.empty()) return;
  std::uint64_t& known = (*into)[id];
  known = std::max(known, stream.submitted);
}

/// The legacy stream comes after every blocking stream of its group, and they after it.
void WorkOrder::order_legacy(StreamId id, Stream& stream) {
  if (stream.kind == StreamKind::non_blocking) return;
  const StreamKind other =
      stream.kind == StreamKind::legacy ? StreamKind::blocking : StreamKind::legacy;
  for (const auto& [other_id, candidate] : streams_) {
    if (other_id == id || candidate.kind != other || candidate.group != stream.group) continue;
    join_end(&stream.after, other_id, candidate);
  }
}

WorkClock WorkOrder::record(StreamId id) {
  const Lock lock(mutex_);
  Stream& stream = stream_of(id);
  order_legacy(id, stream);
  WorkClock clock;
  join_end(&clock, id, stream);
  return clock;
}

WorkClock WorkOrder::record_where(Group group, bool every) {
  const Lock lock(mutex_);
  WorkClock clock;
  for (const auto& [id, stream] : streams_) {
    if (every || stream.group == group) join_end(&clock, id, stream);
  }
  return clock;
}

WorkClock WorkOrder::record_group(Group group) { return record_where(group, false); }
WorkClock WorkOrder::record_all() { return record_where(0, true); }

void WorkOrder::order_after(StreamId id, const WorkClock& clock) {
  const Lock lock(mutex_);
  Stream& stream = stream_of(id);
  join(&stream.after, clock);
  stream.after.erase(id);  // its own work comes in order anyway
}

void WorkOrder::submit(StreamId id, Work work) {
  const Lock lock(mutex_);
  Stream& stream = stream_of(id);
  order_legacy(id, stream);
  WorkClock after;
  join(&after, stream.after);
  stream.after = after;
  auto item = std::make_unique<Item>();
  item->stream = id;
  item->number = ++last_number_;
  item->work = std::move(work);
  item->after = std::move(after);
  item->submitted = std::chrono::steady_clock::now();
  check(*item);
  enter(item.get());
  stream.submitted = item->number;
  stream.pending.push_back(std::move(item));
  ++pending_;
}

/// Reports the first pending work that touches the same bytes and is not ordered before.
void WorkOrder::check(const Item& item) {
  const auto ordered = [&item](const Item& other) {
    if (other.stream == item.stream) return true;
    const auto known = item.after.find(other.stream);
    return known != item.after.end() && known->second >= other.number;
  };
  for (const Touch& touch : item.work.touches) {
    const Bytes reach = std::min<Bytes>(by_physical_.longest, touch.physical);
    auto entry = by_physical_.entries.lower_bound(touch.physical - reach);
    for (; entry != by_physical_.entries.end(); ++entry) {
      if (entry->first >= touch.physical + touch.size) break;
      const auto& [earlier, other] = entry->second;
      if (earlier->physical + earlier->size <= touch.physical || ordered(*other)) continue;
      if (earlier->access == Access::read && touch.access == Access::read) continue;
      report("work of " + text_of(item.stream, touch) + " is not ordered after pending work of " +
             text_of(other->stream, *earlier));
      return;
    }
  }
}

void WorkOrder::enter(Item* item) {
  for (const Touch& touch : item->work.touches) {
    item->by_address.push_back(by_address_.entries.emplace(touch.address, Entry{&touch, item}));
    item->by_physical.push_back(by_physical_.entries.emplace(touch.physical, Entry{&touch, item}));
    by_address_.longest = std::max(by_address_.longest, touch.size);
    by_physical_.longest = std::max(by_physical_.longest, touch.size);
  }
}

void WorkOrder::leave(Item* item) {
  for (const auto& entry : item->by_address) by_address_.entries.erase(entry);
  for (const auto& entry : item->by_physical) by_physical_.entries.erase(entry);
  if (by_address_.entries.empty()) by_address_.longest = by_physical_.longest = 0;
  const auto found = streams_.find(item->stream);
  found->second.completed = item->number;
  found->second.pending.pop_front();
  if (found->second.removed && found->second.pending.empty()) streams_.erase(found);
  --pending_;
}

/// Work up to the point of which nothing that it depends on is left, and that nobody runs yet.
WorkOrder::Item* WorkOrder::runnable(const WorkClock& clock) const {
  for (const auto& [id, number] : clock) {
    const auto found = streams_.find(id);
    if (found == streams_.end() || found->second.pending.empty()) continue;
    Item* item = found->second.pending.front().get();
    if (item->number > number || item->running || !passed_locked(item->after)) continue;
    return item;
  }
  return nullptr;
}

void WorkOrder::execute(Lock& lock, Item* item) {
  item->running = true;
  if (item->work.run) {
    lock.unlock();
    item->work.run();
    lock.lock();
  }
  leave(item);
  progress_.notify_all();
}

void WorkOrder::complete(const WorkClock& clock) {
  Lock lock(mutex_);
  while (!passed_locked(clock)) {
    if (Item* item = runnable(clock)) {
      execute(lock, item);
    } else {
      progress_.wait(lock);  // another thread runs what is missing
    }
  }
}

bool WorkOrder::complete_one(StreamId stream) {
  WorkClock clock;
  {
    const Lock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end() || found->second.pending.empty()) return false;
    const Item& item = *found->second.pending.front();
    clock = item.after;
    clock[stream] = item.number;
  }
  complete(clock);
  return true;
}

void WorkOrder::poll(std::chrono::milliseconds age) {
  Lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  for (bool found = true; found;) {
    found = false;
    for (const auto& [id, stream] : streams_) {
      if (stream.pending.empty()) continue;
      Item* item = stream.pending.front().get();
      if (item->running || now - item->submitted < age || !passed_locked(item->after)) continue;
      if (item->work.ready && !item->work.ready()) continue;
      execute(lock, item);
      found = true;  // the map may have changed meanwhile: begin again
      break;
    }
  }
}

void WorkOrder::expect_idle(Address address, Bytes size, const char* what) {
  const Lock lock(mutex_);
  const Bytes reach = std::min<Bytes>(by_address_.longest, address);
  auto entry = by_address_.entries.lower_bound(address - reach);
  for (; entry != by_address_.entries.end() && entry->first < address + size; ++entry) {
    const auto& [touch, item] = entry->second;
    if (touch->address + touch->size <= address) continue;
    report(std::string(what) + " under pending work of " + text_of(item->stream, *touch));
    return;
  }
}

void WorkOrder::expose(const char* what, StreamId stream, Address address, Bytes size) {
  const Lock lock(mutex_);
  report(std::string(what) + " by " + text_of(stream, {address, 0, size}));
}

void WorkOrder::report(const std::string& text) {
  if (hazards_++ == 0) first_hazard_ = text;
  if (report_) report_(text);
}

std::size_t WorkOrder::pending() const {
  const Lock lock(mutex_);
  return pending_;
}

std::uint64_t WorkOrder::hazards() const {
  const Lock lock(mutex_);
  return hazards_;
}

std::string WorkOrder::first_hazard() const {
  const Lock lock(mutex_);
  return first_hazard_;
}

void WorkOrder::forget_hazards() {
  const Lock lock(mutex_);
  hazards_ = 0;
  first_hazard_.clear();
}

void WorkOrder::report_to(Report to) {
  const Lock lock(mutex_);
  report_ = std::move(to);
}

}  // namespace fragshim
