// HeapModel: what the program does.
#pragma once

#include <iterator>
#include <utility>

#include "tests/model/heap_model.hpp"

namespace fragshim::model {

inline SimulatedOptions device_options(const Setup& setup) {
  SimulatedOptions options;
  options.capacity = setup.capacity;
  options.context_fences = setup.context_fences;
  return options;
}

inline std::unique_ptr<Heap> make_heap(Device& device, const Setup& setup) {
  if (!setup.native()) {
    VirtualOptions options;
    options.span = 64 * GiB;
    options.chunks.least = setup.least_chunk;
    return std::make_unique<VirtualHeap>(device, setup.config, options);
  }
  AllocationConfig config = setup.config;
  config.expandable_segments = setup.kind == HeapKind::expandable;
  NativeOptions options;
  if (setup.kind == HeapKind::fenced) options.reuse = NativeOptions::Reuse::fenced;
  options.allowed = setup.allowed;
  options.expandable_span = 2 * GiB;
  return std::make_unique<NativeHeap>(device, config, options);
}

inline HeapModel::HeapModel(const Setup& setup, Choices& choices, bool trace)
    : setup_(setup),
      choices_(choices),
      trace_(trace),
      device_(device_options(setup)),
      heap_(make_heap(front_, setup)) {
  front_.refuse_one_in(setup.stubborn_in);
  device_.decide_failures_by([this](Call call, std::uint64_t count) { return fault(call, count); });
}

inline void HeapModel::fail_once(Call call, std::uint64_t nth, Status status) {
  failing_ = call;
  failing_at_ = device_.calls(call) + nth;
  failing_with_ = status;
}

/// Says how a device call goes. Two calls never fail here, since nothing could be done about it:
/// destroy, and the unmap that undoes a failed growth.
inline Status HeapModel::fault(Call call, std::uint64_t count) {
  const bool grows = call == Call::allocate_segment || call == Call::create || call == Call::map;
  if (grows) growing_ = true;
  if (call == Call::record || call == Call::synchronize) growing_ = false;  // a release begins
  // Whoever asks gives the device time to get something done.
  if (call == Call::query && choices_.one_in(3)) device_.order().complete_one(any_stream());
  if (armed_ && call == failing_ && count == failing_at_) {
    ++faults_;
    return failing_with_;
  }
  if (!armed_ || setup_.fault_in == 0 || call == Call::destroy) return {};
  if (call == Call::unmap && (growing_ || setup_.kind == HeapKind::expandable)) return {};
  if (call == Call::unreserve || !choices_.one_in(setup_.fault_in)) return {};
  ++faults_;
  say("  device call ", static_cast<int>(call), " fails");
  if (grows) return {Outcome::out_of_memory};
  return {call == Call::record ? Outcome::unsupported : Outcome::failed};
}

inline void HeapModel::step() {
  ++steps_;
  armed_ = true;
  const std::uint64_t what = choices_.below(100);
  if (what < 40) {
    if (live_.size() < setup_.most_live) allocate();
  } else if (what < 72) {
    free_one();
  } else if (what < 80) {
    use();
  } else if (what < 92) {
    progress();
  } else if (what < 96) {
    hand_on();
  } else if (what < 98) {
    trim();
  } else if (what == 98) {
    end_stream();
  } else {
    free_nothing();
  }
  armed_ = false;
  check();
}

inline void HeapModel::allocate() {
  const StreamId stream = any_stream();
  const bool small = choices_.one_in(2);
  const Bytes size = choices_.size_up_to(small ? 2 * MiB : setup_.largest);
  const Counters before = heap_->counters();
  const std::uint64_t faults = faults_;
  const Grant grant = heap_->allocate(size, told(stream));
  say("allocate ", size, " on ", stream, ": ", grant.address);
  if (grant.address == 0) {
    require(!grant.status.ok(), "a refusal that says ok");
    if (grant.status.outcome != Outcome::unsupported) ++refusals_;
    if (faults_ == faults) check_refusal(size, before);
    return;
  }
  require(grant.status.ok(), "an address with an error");
  require(grant.address % 512 == 0, "a block is not aligned");
  const Bytes taken = heap_->counters().allocated - before.allocated;
  require(taken >= size, "a block is too short");
  ++allocations_;
  requested_ += size;
  allocated_ += taken;
  require(live_.emplace(grant.address, Live{size, taken, stream}).second, "the address is live");
  own(grant.address, taken);
  work_on(stream, grant.address, taken);
}

inline HeapModel::Blocks::iterator HeapModel::any_block() {
  const auto count = static_cast<std::ptrdiff_t>(choices_.below(live_.size()));
  return std::next(live_.begin(), count);
}

inline void HeapModel::free_one() {
  if (!live_.empty()) free_block(any_block());
}

inline void HeapModel::free_block(Blocks::iterator block) {
  const Address address = block->first;
  const Live live = block->second;
  say("free ", address, " (", live.size, ") on ", live.stream);
  // Before the call: what the heap does in it may well concern this memory already.
  live_.erase(block);
  disown(address, live.size);
  requested_ -= live.requested;
  allocated_ -= live.size;
  ++frees_;
  require(heap_->free(address, told(live.stream)).ok(), "a live block could not be freed");
}

/// Frees of what is no live block change nothing.
inline void HeapModel::free_nothing() {
  const Address inside = live_.empty() ? 512 : any_block()->first + 512;
  if (live_.count(inside) != 0) return;
  const Status status = heap_->free(inside, told(any_stream()));
  require(status.outcome == Outcome::not_owned, "a free of no block was accepted");
  require(heap_->free(0, told(any_stream())).outcome == Outcome::not_owned, "null was freed");
  if (choices_.one_in(2)) heap_->reset_peaks(true, true);
}

inline void HeapModel::work_on(StreamId stream, Address address, Bytes size) {
  device_.submit(stream, address, size);
}

inline void HeapModel::use() {
  if (live_.empty()) return;
  const auto block = any_block();
  if (streamless()) {
    const StreamId next = any_stream();
    order(block->second.stream, next);
    block->second.stream = next;
  }
  say("work on ", block->first, " on ", block->second.stream);
  work_on(block->second.stream, block->first, block->second.size);
}

/// What is submitted to `after` from now on comes after what `before` has to do now.
inline void HeapModel::order(StreamId before, StreamId after) {
  if (before != after) device_.order().order_after(after, device_.order().record(before));
}

/// Another stream goes on with a block, and frees it one day.
inline void HeapModel::hand_on() {
  if (live_.empty() || !cross_stream()) return;
  const auto block = any_block();
  const StreamId next = any_stream();
  order(block->second.stream, next);
  say(block->first, " goes from ", block->second.stream, " to ", next);
  block->second.stream = next;
  if (choices_.one_in(2)) work_on(next, block->first, block->second.size);
}

inline void HeapModel::progress() {
  const StreamId stream = any_stream();
  if (choices_.one_in(20)) {
    device_.complete_all();
  } else if (choices_.one_in(6)) {
    device_.complete(stream);
  } else {
    for (auto count = choices_.below(4); count > 0; --count) device_.complete_one(stream);
  }
}

inline void HeapModel::trim() {
  const Bytes keep = choices_.one_in(2) ? 0 : choices_.below(setup_.capacity);
  const Bytes before = device_.used();
  const Bytes returned = heap_->trim(keep);
  say("trim to ", keep, ": ", returned);
  require(before - device_.used() == returned, "trim returned another amount than it says");
}

inline void HeapModel::end_stream() {
  if (!cross_stream()) return;
  const std::size_t which = choices_.below(streams_.size());
  const StreamId stream = streams_[which];
  const StreamId heir = choices_.one_in(4) ? stream : next_stream_++;
  // The program hands the stream's blocks on before it ends the stream.
  const StreamId other = streams_[(which + 1) % streams_.size()];
  order(stream, other);
  for (auto& [address, live] : live_) {
    if (live.stream == stream) live.stream = other;
  }
  say("stream ", stream, " ends, ", heir, " begins");
  heap_->forget_stream(stream);
  device_.order().remove_stream(stream);
  device_.add_stream(heir, StreamKind::non_blocking);
  streams_[which] = heir;
}

inline void HeapModel::finish() {
  ++steps_;
  device_.clear_failures();
  while (!live_.empty()) free_block(live_.begin());
  check();
  if (choices_.one_in(2)) device_.complete_all();
  // A request that nothing cached serves makes the heap look after what dead streams left.
  heap_->trim(0);
  const Grant last = heap_->allocate(MiB, told(streams_[0]));
  require(last.address != 0, "an empty heap refused a megabyte");
  device_.complete_all();
  require(heap_->free(last.address, told(streams_[0])).ok(), "the last block could not be freed");
  heap_->trim(0);
  std::string why;
  require(heap_->check(&why), why);
  show();
  require(heap_->counters().reserved == 0, "something stays reserved");
  require(device_.used() == 0 && device_.segments() == 0, "memory is lost");
  require(device_.physicals() == 0 && device_.mappings() == 0, "physical memory is lost");
  require(device_.hazards() == 0, device_.first_hazard());
  const Grant again = heap_->allocate(MiB, told(streams_[0]));
  require(again.address != 0, "an empty heap refused a second megabyte");
  require(heap_->free(again.address, told(streams_[0])).ok(), "... which could not be freed");
  heap_->trim(0);
  require(device_.live_fences() == 0, "fences are lost");
  require(heap_->usage().streams <= streams_.size(), "ended streams are remembered");
}

}  // namespace fragshim::model
