// Every failure class by a case built for it, and which class wins where several could be said.
#include "core/record/failure.hpp"
#include "tests/catch.hpp"

using namespace fragshim;

namespace {

/// A card of 80 GiB of which nothing is anyone else's, and a heap that holds `reserved`.
FailureEvidence card(Bytes reserved, Bytes requested, Bytes request) {
  FailureEvidence e;
  e.request = request;
  e.usage.reserved = reserved;
  e.usage.allocated = requested;
  e.usage.requested = requested;
  e.held = reserved;
  e.device_total = 80 * GiB;
  e.device_free = 80 * GiB - reserved;
  return e;
}

FailureClass cause(const FailureEvidence& e) { return classify(e).cause; }

}  // namespace

TEST_CASE("one free block, pinned and too small, under a limit, is fragmentation", "[failure]") {
  // 512 MiB reserved, 66 of them alive; the limit leaves 388 more; 500 are asked for. The classic
  // index 1 - largest / cached is 0 here, for all that is cached is one block.
  FailureEvidence e = card(512 * MiB, 66 * MiB, 500 * MiB);
  e.limit = 900 * MiB;
  e.largest_reachable = e.usage.largest_free = 446 * MiB;
  e.usage.pinned = 446 * MiB;
  CHECK(e.usage.external_fragmentation() == 0);
  const Failure failure = classify(e);
  CHECK(failure.cause == FailureClass::fragmentation);
  CHECK(failure.available == (388 + 446) * MiB);
  CHECK(failure.capacity == 900 * MiB);
  CHECK(failure.shortfall == 0);
}

TEST_CASE("a large enough block of another stream is stream_bound", "[failure]") {
  FailureEvidence e = card(80 * GiB, 70 * GiB, 4 * GiB);
  e.largest_bound = 5 * GiB;
  e.largest_reachable = 1 * GiB;
  CHECK(cause(e) == FailureClass::stream_bound);
  e.rounded = 6 * GiB;  // then that block would not have done either
  CHECK(cause(e) == FailureClass::fragmentation);
}

TEST_CASE("what only rounding or a split limit prevents is rounding", "[failure]") {
  SECTION("the block in reach is too small for the rounded request") {
    FailureEvidence e = card(80 * GiB, 70 * GiB, 4 * GiB);
    e.rounded = 8 * GiB;
    e.largest_reachable = 5 * GiB;
    CHECK(cause(e) == FailureClass::rounding);
  }
  SECTION("the block in reach must not be split") {
    FailureEvidence e = card(80 * GiB, 70 * GiB, 10 * MiB);
    e.largest_reachable = 10 * GiB;
    CHECK(cause(e) == FailureClass::rounding);
  }
  SECTION("the device would give the request, but not a whole segment") {
    FailureEvidence e = card(80 * GiB - 12 * MiB, 80 * GiB - 12 * MiB, 8 * MiB);
    e.segment_size = 20 * MiB;
    CHECK(cause(e) == FailureClass::rounding);
  }
  SECTION("the bytes were lost inside live blocks") {
    FailureEvidence e = card(80 * GiB, 60 * GiB, 10 * GiB);
    e.usage.allocated = 78 * GiB;
    CHECK(cause(e) == FailureClass::rounding);
  }
}

TEST_CASE("a limit that stops what the card could serve is limit", "[failure]") {
  FailureEvidence e = card(10 * GiB, 9 * GiB, 4 * GiB);
  e.limit = 12 * GiB;
  const Failure failure = classify(e);
  CHECK(failure.cause == FailureClass::limit);
  CHECK(failure.available == 3 * GiB);
  CHECK(failure.shortfall == 1 * GiB);
  e.limit = unlimited;  // as good as none: the device had room, so a race or broken memory
  CHECK(cause(e) == FailureClass::fragmentation);
}

TEST_CASE("other heaps count against the limit with all they hold", "[failure]") {
  FailureEvidence e = card(4 * GiB, 4 * GiB, 3 * GiB);
  e.held = 10 * GiB;
  e.device_free = 70 * GiB;
  e.limit = 12 * GiB;
  CHECK(classify(e).available == 2 * GiB);
  CHECK(cause(e) == FailureClass::limit);
}

TEST_CASE("a card full of others' memory is outside_memory", "[failure]") {
  FailureEvidence e = card(20 * GiB, 20 * GiB, 4 * GiB);
  e.device_free = 1 * GiB;  // 59 GiB are not ours
  CHECK(cause(e) == FailureClass::outside_memory);
  SECTION("a limit that leaves less than the card has changes nothing here") {
    e.limit = 20 * GiB + 512 * MiB;
    CHECK(cause(e) == FailureClass::outside_memory);
  }
  SECTION("unless most of the card is ours") {
    FailureEvidence mine = card(70 * GiB, 70 * GiB, 4 * GiB);
    mine.device_free = 1 * GiB;
    CHECK(cause(mine) == FailureClass::true_shortage);
  }
}

TEST_CASE("more alive than there is memory is true_shortage, whatever else holds", "[failure]") {
  FailureEvidence e = card(78 * GiB, 77 * GiB, 10 * GiB);
  const Failure failure = classify(e);
  CHECK(failure.cause == FailureClass::true_shortage);
  CHECK(failure.available == 3 * GiB);
  CHECK(failure.shortfall == 7 * GiB);
  e.limit = 79 * GiB;
  CHECK(cause(e) == FailureClass::true_shortage);
  e.usage.reserved = e.held = 10 * GiB;
  e.usage.allocated = e.usage.requested = 10 * GiB;
  e.device_free = 0;
  e.request = 75 * GiB;
  CHECK(cause(e) == FailureClass::true_shortage);  // even with the others gone
}

TEST_CASE("hopeless sizes and unknown cards do not overflow", "[failure]") {
  FailureEvidence e = card(1 * GiB, 1 * GiB, unlimited);
  CHECK(cause(e) == FailureClass::true_shortage);
  e.device_total = e.device_free = 0;
  CHECK(cause(e) == FailureClass::true_shortage);
  e.limit = 2 * GiB;
  CHECK(cause(e) == FailureClass::true_shortage);
  CHECK(classify(FailureEvidence{}).shortfall == 0);
}

TEST_CASE("the classes have their names", "[failure]") {
  CHECK(name(FailureClass::fragmentation) == "fragmentation");
  CHECK(name(FailureClass::stream_bound) == "stream_bound");
  CHECK(name(FailureClass::rounding) == "rounding");
  CHECK(name(FailureClass::limit) == "limit");
  CHECK(name(FailureClass::outside_memory) == "outside_memory");
  CHECK(name(FailureClass::true_shortage) == "true_shortage");
}
