// Streams, fences and hazards of the simulated device.
#include <atomic>
#include <thread>
#include <vector>

#include "core/device/simulated.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

struct Order {
  SimulatedDevice device;
  Address at = 0;
  Order() { REQUIRE(device.allocate_segment(4 * MiB, &at).ok()); }
  Fence record(StreamId stream) {
    Fence fence;
    REQUIRE(device.record(stream, &fence).ok());
    return fence;
  }
  bool passed(Fence fence) { return device.query(fence).ok(); }
};

}  // namespace

TEST_CASE("a fence passes once the work before it is done, not the work behind it") {
  Order order;
  order.device.submit(1, order.at, 512);
  const Fence fence = order.record(1);
  order.device.submit(1, order.at, 512);
  CHECK(order.device.query(fence).outcome == Outcome::not_ready);
  CHECK(order.device.complete_one(1));
  CHECK(order.passed(fence));
  CHECK(order.device.order().pending() == 1);
  CHECK(order.passed(order.record(2)));
  CHECK(order.device.hazards() == 0);
}

TEST_CASE("waiting for a fence completes what it covers and no more") {
  Order order;
  order.device.submit(1, order.at, 512);
  const Fence fence = order.record(1);
  order.device.submit(1, order.at, 512);
  order.device.submit(2, order.at + MiB, 512);
  REQUIRE(order.device.wait(fence).ok());
  CHECK(order.device.order().pending() == 2);
  const Fence everything = order.record(all_streams);
  CHECK_FALSE(order.passed(everything));
  REQUIRE(order.device.wait(everything).ok());
  CHECK(order.device.order().pending() == 0);
}

TEST_CASE("the same bytes on another stream are a hazard, unless ordered") {
  Order order;
  order.device.submit(1, order.at, MiB);
  SECTION("no order") {
    order.device.submit(2, order.at + MiB - 1, 1);
    CHECK(order.device.hazards() == 1);
    CHECK(order.device.first_hazard().find("stream 0x2") != std::string::npos);
  }
  SECTION("other bytes") {
    order.device.submit(2, order.at + MiB, MiB);
    CHECK(order.device.hazards() == 0);
  }
  SECTION("the same stream") {
    order.device.submit(1, order.at, MiB);
    CHECK(order.device.hazards() == 0);
  }
  SECTION("a stream wait") {
    REQUIRE(order.device.stream_wait(2, order.record(1)).ok());
    order.device.submit(2, order.at, MiB);
    CHECK(order.device.hazards() == 0);
  }
  SECTION("a stream wait on a fence too early") {
    const Fence early = order.record(1);
    order.device.submit(1, order.at, MiB);
    REQUIRE(order.device.stream_wait(2, early).ok());
    order.device.submit(2, order.at, MiB);
    CHECK(order.device.hazards() == 1);
  }
  SECTION("a stream wait handed on by a third stream") {
    REQUIRE(order.device.stream_wait(3, order.record(1)).ok());
    REQUIRE(order.device.stream_wait(2, order.record(3)).ok());
    order.device.submit(2, order.at, MiB);
    CHECK(order.device.hazards() == 0);
  }
  SECTION("a host wait") {
    REQUIRE(order.device.wait(order.record(1)).ok());
    order.device.submit(2, order.at, MiB);
    CHECK(order.device.hazards() == 0);
  }
  SECTION("a fence over all streams") {
    REQUIRE(order.device.stream_wait(2, order.record(all_streams)).ok());
    order.device.submit(2, order.at, MiB);
    CHECK(order.device.hazards() == 0);
  }
  SECTION("synchronize") {
    REQUIRE(order.device.synchronize().ok());
    order.device.submit(2, order.at, MiB);
    CHECK(order.device.hazards() == 0);
  }
}

TEST_CASE("two reads of the same bytes are no hazard, a read and a write are") {
  Order order;
  order.device.submit(1, order.at, 512, Access::read);
  order.device.submit(2, order.at, 512, Access::read);
  CHECK(order.device.hazards() == 0);
  order.device.submit(3, order.at, 512, Access::write);
  CHECK(order.device.hazards() == 1);
}

TEST_CASE("bytes shared through two mappings are the same bytes") {
  SimulatedDevice device;
  Address at = 0;
  Physical memory;
  REQUIRE(device.reserve(8 * MiB, &at).ok());
  REQUIRE(device.create(2 * MiB, &memory).ok());
  REQUIRE(device.map(at, 2 * MiB, memory).ok());
  REQUIRE(device.map(at + 4 * MiB, 2 * MiB, memory).ok());
  device.submit(1, at + 100, 50);
  device.submit(2, at + 4 * MiB + 150, 50);
  CHECK(device.hazards() == 0);
  device.submit(2, at + 4 * MiB + 149, 1);
  CHECK(device.hazards() == 1);
}

TEST_CASE("unmapping under pending work is a hazard; releasing a segment waits instead") {
  SimulatedDevice device;
  Address at = 0;
  Physical memory;
  REQUIRE(device.reserve(4 * MiB, &at).ok());
  REQUIRE(device.create(2 * MiB, &memory).ok());
  REQUIRE(device.map(at, 2 * MiB, memory).ok());
  REQUIRE(device.map(at + 2 * MiB, 2 * MiB, memory).ok());
  device.submit(1, at, 512);
  REQUIRE(device.unmap(at + 2 * MiB, 2 * MiB).ok());  // the other mapping: nothing runs there
  CHECK(device.hazards() == 0);
  REQUIRE(device.unmap(at, 2 * MiB).ok());
  CHECK(device.hazards() == 1);
  device.order().forget_hazards();

  REQUIRE(device.allocate_segment(MiB, &at).ok());
  device.submit(1, at, MiB);
  REQUIRE(device.release_segment(at, MiB).ok());
  CHECK(device.hazards() == 0);
  CHECK(device.order().pending() == 0);
  device.submit(1, at, MiB);
  CHECK(device.hazards() == 1);  // it is not there any more
}

TEST_CASE("the legacy stream and blocking streams order one another, non-blocking ones do not") {
  Order order;
  order.device.add_stream(0, StreamKind::legacy);
  order.device.add_stream(1, StreamKind::blocking);
  order.device.add_stream(2, StreamKind::blocking);
  order.device.add_stream(3, StreamKind::non_blocking);
  SECTION("blocking, then legacy, then blocking") {
    order.device.submit(1, order.at, 512);
    order.device.submit(0, order.at, 512);
    order.device.submit(2, order.at, 512);
    CHECK(order.device.hazards() == 0);
  }
  SECTION("two blocking streams") {
    order.device.submit(1, order.at, 512);
    order.device.submit(2, order.at, 512);
    CHECK(order.device.hazards() == 1);
  }
  SECTION("a fence on the legacy stream covers the blocking ones") {
    order.device.submit(1, order.at, 512);
    const Fence fence = order.record(0);
    CHECK_FALSE(order.passed(fence));
    order.device.complete(1);
    CHECK(order.passed(fence));
  }
  SECTION("legacy, then non-blocking") {
    order.device.submit(0, order.at, 512);
    order.device.submit(3, order.at, 512);
    CHECK(order.device.hazards() == 1);
  }
}

TEST_CASE("a stream of a name used before has no part in the old one's work") {
  Order order;
  order.device.submit(1, order.at, 512);
  const Fence old = order.record(1);
  order.device.order().remove_stream(1);
  order.device.complete_all();
  order.device.submit(1, order.at, 512);
  CHECK(order.passed(old));
}

TEST_CASE("fences: a device without context-wide ones, unknown ones, and none left over") {
  SimulatedOptions options;
  options.context_fences = false;
  SimulatedDevice device(options);
  Fence fence;
  CHECK(device.record(all_streams, &fence).outcome == Outcome::unsupported);
  CHECK(device.query(Fence{99}).outcome == Outcome::not_owned);
  CHECK(device.wait(Fence{99}).outcome == Outcome::not_owned);
  CHECK(device.stream_wait(1, Fence{99}).outcome == Outcome::not_owned);
  REQUIRE(device.record(1, &fence).ok());
  CHECK(device.live_fences() == 1);
  device.retire(fence);
  CHECK(device.live_fences() == 0);
}

TEST_CASE("work runs in order and with no lock held, each piece once, over several threads") {
  WorkOrder order;
  std::vector<int> ran;
  std::atomic<bool> flag{false};
  order.submit(1, Work{{},
                       [&] {
                         while (!flag) std::this_thread::yield();
                         ran.push_back(1);
                       },
                       {}});
  order.order_after(2, order.record(1));
  order.submit(2, Work{{}, [&] { ran.push_back(2); }, {}});
  order.submit(1, Work{{}, [&] { ran.push_back(3); }, {}});
  const WorkClock second = order.record(2);
  std::thread one([&] { order.complete(second); });
  std::thread two([&] { order.complete(second); });
  CHECK_FALSE(order.passed(second));
  flag = true;
  one.join();
  two.join();
  CHECK(ran == std::vector<int>{1, 2});
  order.complete(order.record_all());
  CHECK(ran == std::vector<int>{1, 2, 3});
}

TEST_CASE("a poll completes what is old enough and can run, and nothing behind what cannot") {
  WorkOrder order;
  bool ready = false;
  int ran = 0;
  order.submit(1, Work{{}, [&] { ++ran; }, [&] { return ready; }});
  order.submit(1, Work{{}, [&] { ++ran; }, {}});
  order.submit(2, Work{{}, [&] { ++ran; }, {}});
  order.poll(std::chrono::hours(1));
  CHECK(ran == 0);
  order.poll(std::chrono::milliseconds(0));
  CHECK(ran == 1);
  ready = true;
  order.poll(std::chrono::milliseconds(0));
  CHECK(ran == 3);
}
