// What the simulated device's memory has in common with a real one's.
#include <random>
#include <set>
#include <vector>

#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

Address segment(SimulatedDevice& device, Bytes size) {
  Address address = 0;
  REQUIRE(device.allocate_segment(size, &address).ok());
  return address;
}

Physical physical(SimulatedDevice& device, Bytes size) {
  Physical memory;
  REQUIRE(device.create(size, &memory).ok());
  return memory;
}

Address range(SimulatedDevice& device, Bytes size) {
  Address address = 0;
  REQUIRE(device.reserve(size, &address).ok());
  return address;
}

}  // namespace

TEST_CASE("segments are aligned as cudaMalloc aligns, and small ones share pages") {
  SimulatedDevice device;
  CHECK(segment(device, 1) % 512 == 0);
  CHECK(segment(device, 4 * KiB) % (4 * KiB) == 0);
  CHECK(segment(device, 64 * KiB) % (64 * KiB) == 0);
  CHECK(segment(device, MiB) % MiB == 0);
  CHECK(segment(device, MiB + 1) % (2 * MiB) == 0);
  CHECK(segment(device, 20 * MiB) % (2 * MiB) == 0);

  SimulatedOptions options;
  options.charge_pages = true;
  SimulatedDevice pages(options);
  std::set<Address> page;
  for (int i = 0; i < 2000; ++i) page.insert(round_down(segment(pages, 512), 2 * MiB));
  CHECK(page.size() == 1);
  CHECK(pages.used() == 2 * MiB);
}

TEST_CASE("capacity counts the bytes asked for, or whole pages where told so") {
  SimulatedOptions options;
  options.capacity = 10 * MiB;
  options.charge_pages = GENERATE(false, true);
  SimulatedDevice device(options);
  const Address first = segment(device, 7 * MiB);
  CHECK(device.used() == (options.charge_pages ? 8 : 7) * MiB);
  Address second = 0;
  CHECK(device.allocate_segment(3 * MiB, &second).ok() == !options.charge_pages);
  CHECK(device.allocate_segment(MiB + MiB / 2, &second).ok() == options.charge_pages);
  Bytes free = 1;
  Bytes total = 0;
  REQUIRE(device.memory_info(&free, &total).ok());
  CHECK(free == 0);
  CHECK(total == 10 * MiB);
  CHECK(device.allocate_segment(512, &second).outcome == Outcome::out_of_memory);
  CHECK(device.release_segment(first, 7 * MiB).ok());
  CHECK(device.allocate_segment(6 * MiB, &second).ok());
  CHECK(second == first);  // the lowest address that is free
}

TEST_CASE("segments go back whole and once") {
  SimulatedDevice device;
  const Address address = segment(device, 4 * MiB);
  CHECK(device.release_segment(address + 512, 4 * MiB).outcome == Outcome::not_owned);
  CHECK(device.release_segment(address, 2 * MiB).outcome == Outcome::failed);
  CHECK(device.release_segment(address, 4 * MiB).ok());
  CHECK(device.release_segment(address, 4 * MiB).outcome == Outcome::not_owned);
  CHECK(device.allocate_segment(0, nullptr).outcome == Outcome::failed);
  Address never = 0;
  CHECK(device.allocate_segment(unlimited, &never).no_memory());
  CHECK(device.used() == 0);
}

TEST_CASE("physical memory maps whole only, and at several addresses") {
  SimulatedDevice device;
  const Address at = range(device, 16 * MiB);
  const Physical memory = physical(device, 4 * MiB);
  CHECK(device.map(at, 2 * MiB, memory).outcome == Outcome::unsupported);
  CHECK(device.map(at + 4096, 4 * MiB, memory).outcome == Outcome::failed);
  CHECK(device.map(at + 14 * MiB, 4 * MiB, memory).outcome == Outcome::failed);  // out of it
  REQUIRE(device.map(at, 4 * MiB, memory).ok());
  CHECK(device.map(at + 2 * MiB, 4 * MiB, memory).outcome == Outcome::failed);  // overlaps
  REQUIRE(device.map(at + 8 * MiB, 4 * MiB, memory).ok());
  const auto one = device.mapped_physical(at + 5000);
  const auto other = device.mapped_physical(at + 8 * MiB + 5000);
  REQUIRE((one && other));
  CHECK(one->physical == other->physical);
  CHECK(one->handle == memory.handle);
  CHECK(one->offset == 5000);
  CHECK_FALSE(device.mapped_physical(at + 4 * MiB));
  CHECK(device.unreserve(at, 16 * MiB).outcome == Outcome::failed);  // still mapped
}

TEST_CASE("physical memory lives until its creator and its last mapping let go") {
  SimulatedDevice device;
  const Address at = range(device, 8 * MiB);
  const Physical memory = physical(device, 2 * MiB);
  REQUIRE(device.map(at, 2 * MiB, memory).ok());
  REQUIRE(device.map(at + 2 * MiB, 2 * MiB, memory).ok());
  REQUIRE(device.destroy(memory, 2 * MiB).ok());
  CHECK(device.destroy(memory, 2 * MiB).outcome == Outcome::not_owned);
  CHECK(device.map(at + 4 * MiB, 2 * MiB, memory).outcome == Outcome::not_owned);
  CHECK(device.used() == 2 * MiB);
  REQUIRE(device.unmap(at, 2 * MiB).ok());
  CHECK(device.used() == 2 * MiB);
  REQUIRE(device.unmap(at + 2 * MiB, 2 * MiB).ok());
  CHECK(device.used() == 0);
  CHECK(device.unreserve(at, 8 * MiB).ok());
}

TEST_CASE("a mapping is undone whole; several at once only without a gap") {
  SimulatedDevice device;
  const Address at = range(device, 16 * MiB);
  for (const Bytes offset : {0 * MiB, 4 * MiB, 12 * MiB}) {
    REQUIRE(device.map(at + offset, 4 * MiB, physical(device, 4 * MiB)).ok());
  }
  CHECK(device.unmap(at, 2 * MiB).outcome == Outcome::failed);
  CHECK(device.unmap(at + 2 * MiB, 2 * MiB).outcome == Outcome::failed);
  CHECK(device.unmap(at, 16 * MiB).outcome == Outcome::failed);
  CHECK(device.unmap(at, 6 * MiB).outcome == Outcome::failed);
  CHECK(device.mappings() == 3);
  CHECK(device.unmap(at, 8 * MiB).ok());
  CHECK(device.mappings() == 1);
}

TEST_CASE("a device without virtual memory says so") {
  SimulatedOptions options;
  options.granularity = 0;
  SimulatedDevice device(options);
  Address at = 0;
  Physical memory;
  CHECK(device.granularity() == 0);
  CHECK(device.reserve(2 * MiB, &at).outcome == Outcome::unsupported);
  CHECK(device.create(2 * MiB, &memory).outcome == Outcome::unsupported);
}

TEST_CASE("no two live segments share a byte of physical memory, and all of it comes back") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    SimulatedDevice device;
    std::vector<std::pair<Address, Bytes>> live;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 5 < 3 || live.empty()) {
        const Bytes size = 1 + random() % (Bytes{1} << (8 + random() % 16));
        live.emplace_back(segment(device, size), size);
      } else {
        const std::size_t which = random() % live.size();
        REQUIRE(device.release_segment(live[which].first, live[which].second).ok());
        live[which] = live.back();
        live.pop_back();
      }
    }
    std::map<Address, Bytes> physical_bytes;
    for (const auto& [at, size] : live) {
      const auto where = device.mapped_physical(at);
      REQUIRE(where);
      REQUIRE(where->size == size);
      REQUIRE(physical_bytes.emplace(where->physical, size).second);
    }
    Address end = 0;
    for (const auto& [at, size] : physical_bytes) {
      REQUIRE(at >= end);
      end = at + size;
    }
    for (const auto& [at, size] : live) REQUIRE(device.release_segment(at, size).ok());
    CHECK(device.used() == 0);
  }
}

TEST_CASE("calls fail as ordered, and do nothing then") {
  SimulatedDevice device;
  Address at = 0;
  device.fail_next(Call::allocate_segment, 2, {Outcome::out_of_memory, 2});
  CHECK(device.allocate_segment(MiB, &at).ok());
  const Status second = device.allocate_segment(MiB, &at);
  CHECK(second.outcome == Outcome::out_of_memory);
  CHECK(second.code == 2);
  CHECK(device.used() == MiB);
  CHECK(device.allocate_segment(MiB, &at).ok());

  device.fail_every(Call::create, 3, {Outcome::failed, 0});
  int failed = 0;
  Physical memory;
  for (int i = 0; i < 9; ++i) failed += device.create(2 * MiB, &memory).ok() ? 0 : 1;
  CHECK(failed == 3);

  device.clear_failures();
  device.decide_failures_by([](Call call, std::uint64_t count) {
    return Status{call == Call::reserve && count > 1 ? Outcome::failed : Outcome::ok, 0};
  });
  CHECK(device.reserve(2 * MiB, &at).ok());
  CHECK_FALSE(device.reserve(2 * MiB, &at).ok());
  CHECK(device.create(2 * MiB, &memory).ok());
}
