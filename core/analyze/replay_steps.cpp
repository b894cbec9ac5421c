#include "core/analyze/replay_steps.hpp"

#include <algorithm>

#include "core/analyze/input_error.hpp"

namespace fragshim {

namespace {

constexpr Bytes largest_size = (Bytes{1} << 48) - 1;
constexpr std::uint64_t largest_skip = (std::uint64_t{1} << 28) - 1;
constexpr std::size_t most_streams = std::size_t{1} << 16;

}  // namespace

bool StepReader::next(std::vector<ReplayStep>* batch) {
  batch->clear();
  Event event;
  while (batch->size() < batch_size) {
    if (!events_.next(&event)) {
      counts_.incomplete = events_.incomplete();
      break;
    }
    resolve(event, batch);
  }
  return !batch->empty();
}

void StepReader::resolve(const Event& event, std::vector<ReplayStep>* batch) {
  ++counts_.events;
  note_time(event);
  if (filter_.leaves_out(event)) return leave_out(event, batch);
  switch (event.action) {
    case Action::allocate:
      if (event.address != 0 && event.size != 0) resolve_allocation(event, batch);
      break;
    case Action::free:
      resolve_free(event, batch);
      break;
    case Action::trim:
      batch->push_back({Action::trim, 0, 0, 0, counts_.events, event.time_ns});
      break;
    case Action::allocate_failure:
      ++counts_.recorded_failures;
      break;
    case Action::none:
      break;
  }
}

/// Threads write their rows a little out of order.
void StepReader::note_time(const Event& event) {
  if (counts_.events == 1) counts_.begin_ns = counts_.end_ns = event.time_ns;
  counts_.begin_ns = std::min(counts_.begin_ns, event.time_ns);
  counts_.end_ns = std::max(counts_.end_ns, event.time_ns);
}

void StepReader::leave_out(const Event& event, std::vector<ReplayStep>* batch) {
  counts_.left_out_events = filter_.events();
  counts_.left_out_peak = filter_.peak();
  if (event.action != Action::allocate) return;
  const auto slot = slots_.remove(event.address);
  if (!slot) return;
  ++counts_.implied_frees;
  batch->push_back({Action::free, *slot, 0, event.stream, counts_.events, event.time_ns});
}

void StepReader::resolve_allocation(const Event& event, std::vector<ReplayStep>* batch) {
  auto slot = slots_.add(event.address);
  if (!slot) {
    ++counts_.implied_frees;
    resolve_free(event, batch);
    slot = slots_.add(event.address);
  }
  batch->push_back(
      {Action::allocate, *slot, event.size, event.stream, counts_.events, event.time_ns});
}

void StepReader::resolve_free(const Event& event, std::vector<ReplayStep>* batch) {
  const auto slot = slots_.remove(event.address);
  if (slot) {
    batch->push_back({Action::free, *slot, 0, event.stream, counts_.events, event.time_ns});
  } else if (event.address != 0) {
    ++counts_.unmatched_frees;
  }
}

StoredSteps::StoredSteps(EventSource& events) {
  StepReader reader(events);
  std::vector<ReplayStep> batch;
  while (reader.next(&batch)) {
    slots_ = reader.slots();
    sizes_.resize(slots_);
    store(batch);
  }
  counts_ = reader.counts();
  steps_.shrink_to_fit();
  sizes_ = {};
}

void StoredSteps::store(const std::vector<ReplayStep>& batch) {
  for (const ReplayStep& step : batch) {
    Packed packed{};
    packed.size = std::min(step.size, largest_size);
    packed.stream = stream_index(step.stream) & (most_streams - 1);
    packed.slot = step.slot;
    packed.action = static_cast<std::uint64_t>(step.action) & 0xf;
    packed.skip = std::min(step.row - last_row_, largest_skip) & largest_skip;
    last_row_ += packed.skip;
    steps_.push_back(packed);
    follow_requested(step);
  }
}

void StoredSteps::follow_requested(const ReplayStep& step) {
  if (step.action == Action::allocate) {
    sizes_[step.slot] = step.size;
    requested_ += step.size;
    requested_peak_ = std::max(requested_peak_, requested_);
  } else if (step.action == Action::free) {
    requested_ -= sizes_[step.slot];
  }
}

std::uint64_t StoredSteps::stream_index(StreamId stream) {
  // The one used last is found first: most programs stay on a stream for long.
  const auto found = std::find(streams_.rbegin(), streams_.rend(), stream);
  if (found != streams_.rend()) return static_cast<std::uint64_t>(streams_.rend() - found) - 1;
  if (streams_.size() == most_streams) throw InputError("a trace with more than 65536 streams");
  streams_.push_back(stream);
  return streams_.size() - 1;
}

bool StoredSteps::Reader::next(std::vector<ReplayStep>* batch) {
  batch->clear();
  const std::size_t end = std::min(stored_.steps_.size(), next_ + batch_size);
  for (; next_ < end; ++next_) {
    const Packed& packed = stored_.steps_[next_];
    row_ += packed.skip;
    batch->push_back({static_cast<Action>(packed.action),
                      static_cast<AddressSlots::Slot>(packed.slot), packed.size,
                      stored_.streams_[packed.stream], row_});
  }
  return !batch->empty();
}

}  // namespace fragshim
