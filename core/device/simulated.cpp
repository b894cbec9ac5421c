#include "core/device/simulated.hpp"

#include "core/device/prices.hpp"

namespace fragshim {
namespace {

constexpr Status not_ours{Outcome::not_owned, 0};

}  // namespace

SimulatedDevice::SimulatedDevice(const SimulatedOptions& options)
    : capacity_(options.capacity),
      granularity_(options.granularity),
      context_fences_(options.context_fences),
      memory_(options) {}

/// Counts and charges a call, and says whether it was ordered to fail. Takes mutex_ as held.
Status SimulatedDevice::enter(Call call, double price) {
  time_us_ += price;
  return faults_.enter(call);
}

Status SimulatedDevice::allocate_segment(Bytes size, Address* out) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::allocate_segment, prices::at(prices::malloc_us, size));
  return fault.ok() ? memory_.allocate_segment(size, out) : fault;
}

Status SimulatedDevice::release_segment(Address address, Bytes size) noexcept {
  {
    const Lock lock(mutex_);
    const Status fault = enter(Call::release_segment, prices::at(prices::free_us, size));
    if (!fault.ok()) return fault;
    const auto segment = memory_.segment_of(address);
    if (!segment || segment->address != address) return not_ours;
  }
  complete_all();  // as cuMemFree waits
  const Lock lock(mutex_);
  return memory_.release_segment(address, size);
}

Bytes SimulatedDevice::granularity() const noexcept { return granularity_; }

Status SimulatedDevice::reserve(Bytes size, Address* out) noexcept {
  return reserve_aligned(size, granularity_, out);
}

Status SimulatedDevice::reserve_aligned(Bytes size, Bytes alignment, Address* out) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::reserve, prices::reserve_us);
  return fault.ok() ? memory_.reserve(size, alignment, out) : fault;
}

Status SimulatedDevice::unreserve(Address address, Bytes size) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::unreserve, prices::unreserve_us);
  return fault.ok() ? memory_.unreserve(address, size) : fault;
}

Status SimulatedDevice::create(Bytes size, Physical* out) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::create, prices::at(prices::create_us, size));
  return fault.ok() ? memory_.create(size, out) : fault;
}

Status SimulatedDevice::destroy(Physical memory, Bytes size) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::destroy, prices::at(prices::release_us, size));
  return fault.ok() ? memory_.destroy(memory) : fault;
}

Status SimulatedDevice::map(Address address, Bytes size, Physical memory) noexcept {
  const Lock lock(mutex_);
  const double price = prices::at(prices::map_us, size) + prices::at(prices::set_access_us, size);
  const Status fault = enter(Call::map, price);
  return fault.ok() ? memory_.map(address, size, memory) : fault;
}

Status SimulatedDevice::unmap(Address address, Bytes size) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::unmap, prices::at(prices::unmap_us, size));
  if (!fault.ok()) return fault;
  if (memory_.mappings_in(address, size) != 0) order_.expect_idle(address, size, "unmapping");
  return memory_.unmap(address, size);
}

Status SimulatedDevice::record(StreamId stream, Fence* out) noexcept {
  const bool whole_context = stream == all_streams;
  const Lock lock(mutex_);
  const Status fault =
      enter(Call::record, whole_context ? prices::record_context_us : prices::record_us);
  if (!fault.ok()) return fault;
  if (whole_context && !context_fences_) return {Outcome::unsupported, 0};
  out->handle = next_fence_++;
  fences_.emplace(
      out->handle,
      FenceState{whole_context ? order_.record_all() : order_.record(stream), whole_context});
  return {};
}

/// The point a fence stands for; false if there is no such fence. Takes mutex_ as held.
bool SimulatedDevice::fence_clock(Fence fence, WorkClock* out, bool* whole_context) const {
  const auto found = fences_.find(fence.handle);
  if (found == fences_.end()) return false;
  *out = found->second.clock;
  if (whole_context != nullptr) *whole_context = found->second.whole_context;
  return true;
}

Status SimulatedDevice::query(Fence fence) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::query, prices::query_us);
  if (!fault.ok()) return fault;
  const auto found = fences_.find(fence.handle);
  if (found == fences_.end()) return not_ours;
  return {order_.passed(found->second.clock) ? Outcome::ok : Outcome::not_ready, 0};
}

Status SimulatedDevice::wait(Fence fence) noexcept {
  WorkClock clock;
  {
    const Lock lock(mutex_);
    const Status fault = enter(Call::wait, prices::query_us);
    if (!fault.ok()) return fault;
    if (!fence_clock(fence, &clock)) return not_ours;
  }
  order_.complete(clock);
  return {};
}

Status SimulatedDevice::stream_wait(StreamId stream, Fence fence) noexcept {
  if (stream == all_streams) return wait(fence);
  const Lock lock(mutex_);
  WorkClock clock;
  bool whole_context = false;
  const bool known = fence_clock(fence, &clock, &whole_context);
  const Status fault = enter(
      Call::stream_wait, whole_context ? prices::stream_wait_context_us : prices::stream_wait_us);
  if (!fault.ok()) return fault;
  if (!known) return not_ours;
  order_.order_after(stream, clock);
  return {};
}

void SimulatedDevice::retire(Fence fence) noexcept {
  const Lock lock(mutex_);
  fences_.erase(fence.handle);
}

Status SimulatedDevice::synchronize() noexcept {
  {
    const Lock lock(mutex_);
    const Status fault = enter(Call::synchronize, prices::query_us);
    if (!fault.ok()) return fault;
  }
  complete_all();
  return {};
}

Status SimulatedDevice::memory_info(Bytes* free, Bytes* total) noexcept {
  const Lock lock(mutex_);
  const Status fault = enter(Call::memory_info, prices::memory_info_us);
  if (!fault.ok()) return fault;
  *free = capacity_ - memory_.used();
  *total = capacity_;
  return {};
}

void SimulatedDevice::submit(StreamId stream, Address address, Bytes size, Access access) {
  Work work;
  if (!touches(address, size, access, &work.touches)) {
    order_.expose("work on memory that is not there", stream, address, size);
  }
  order_.submit(stream, std::move(work));
}

bool SimulatedDevice::touches(Address address, Bytes size, Access access,
                              std::vector<Touch>* out) const {
  const Lock lock(mutex_);
  while (size > 0) {
    const auto location = memory_.locate(address);
    if (!location) return false;
    const Bytes length = size < location->size ? size : location->size;
    out->push_back({address, location->physical, length, access});
    address += length;
    size -= length;
  }
  return true;
}

std::optional<Location> SimulatedDevice::mapped_physical(Address address) const {
  const Lock lock(mutex_);
  return memory_.locate(address);
}

std::optional<SimulatedMemory::Segment> SimulatedDevice::segment_of(Address address) const {
  const Lock lock(mutex_);
  return memory_.segment_of(address);
}

std::optional<SimulatedMemory::Segment> SimulatedDevice::reservation_of(Address address) const {
  const Lock lock(mutex_);
  return memory_.reservation_of(address);
}

Bytes SimulatedDevice::physical_size(Physical memory) const {
  const Lock lock(mutex_);
  return memory_.physical_size(memory);
}

std::size_t SimulatedDevice::mappings_in(Address address, Bytes size) const {
  const Lock lock(mutex_);
  return memory_.mappings_in(address, size);
}

Bytes SimulatedDevice::used() const {
  const Lock lock(mutex_);
  return memory_.used();
}

std::size_t SimulatedDevice::segments() const {
  const Lock lock(mutex_);
  return memory_.segments();
}

std::size_t SimulatedDevice::physicals() const {
  const Lock lock(mutex_);
  return memory_.physicals();
}

std::size_t SimulatedDevice::mappings() const {
  const Lock lock(mutex_);
  return memory_.mappings();
}

std::size_t SimulatedDevice::live_fences() const {
  const Lock lock(mutex_);
  return fences_.size();
}

double SimulatedDevice::time_us() const {
  const Lock lock(mutex_);
  return time_us_;
}

std::uint64_t SimulatedDevice::calls(Call call) const {
  const Lock lock(mutex_);
  return faults_.counted(call);
}

void SimulatedDevice::fail_next(Call call, std::uint64_t nth, Status status) {
  const Lock lock(mutex_);
  faults_.fail_next(call, nth, status);
}

void SimulatedDevice::fail_every(Call call, std::uint64_t n, Status status) {
  const Lock lock(mutex_);
  faults_.fail_every(call, n, status);
}

void SimulatedDevice::decide_failures_by(Faults::Decide decide) {
  const Lock lock(mutex_);
  faults_.decide_by(std::move(decide));
}

void SimulatedDevice::clear_failures() {
  const Lock lock(mutex_);
  faults_.clear();
}

}  // namespace fragshim
