#include "tests/driver/objects.hpp"

namespace standin {

Driver& driver() {
  static Driver& it = *new Driver;
  return it;
}

std::uint64_t new_id() { return ++driver().last_id; }

std::map<Address, Allocation>::iterator allocation_of(Address address) {
  auto& all = driver().allocations;
  auto found = all.upper_bound(address);
  if (found == all.begin()) return all.end();
  --found;
  return address - found->first < found->second.size ? found : all.end();
}

bool lacks_access(Address address, Bytes size) {
  const auto& all = driver().without_access;
  auto next = all.lower_bound(address + size);
  if (next == all.begin()) return false;
  --next;
  return next->first + next->second > address;
}

Machine* machine_of(CUdevice device) {
  const auto& machines = driver().machines;
  if (device < 0 || static_cast<std::size_t>(device) >= machines.size()) return nullptr;
  return machines[static_cast<std::size_t>(device)].get();
}

Machine* machine_at(Address address) {
  for (const auto& machine : driver().machines) {
    if (machine->holds(address)) return machine.get();
  }
  return nullptr;
}

std::shared_ptr<Stream> find_stream(Context& context, CUstream handle, bool per_thread) {
  const Lock lock(driver().mutex);
  if (handle == nullptr) handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY) return context.legacy;
  if (handle == CU_STREAM_PER_THREAD) {
    auto& own = context.per_thread[std::this_thread::get_id()];
    if (!own) {
      own = std::make_shared<Stream>();
      own->id = new_id();
      own->context = &context;
      own->kind = StreamKind::blocking;
      context.machine->order().add_stream(own->id, own->kind, context.id);
    }
    return own;
  }
  const auto found = driver().streams.find(handle);
  return found == driver().streams.end() ? nullptr : found->second;
}

std::shared_ptr<Event> find_event(CUevent handle) {
  const Lock lock(driver().mutex);
  const auto found = driver().events.find(handle);
  return found == driver().events.end() ? nullptr : found->second;
}

}  // namespace standin
