// Every device call of a short program fails once, each in a run of its own.
#include "tests/model/heap_model.hpp"
#include "tests/model/seeds.hpp"

using namespace fragshim;
using namespace fragshim::model;

namespace {

constexpr int program_length = 120;

struct Failing {
  Call call;
  Outcome outcome;
};

// destroy and unreserve do not fail: nothing could be done about it.
constexpr Failing failures[] = {
    {Call::allocate_segment, Outcome::out_of_memory},
    {Call::allocate_segment, Outcome::failed},
    {Call::release_segment, Outcome::failed},
    {Call::reserve, Outcome::out_of_memory},
    {Call::create, Outcome::out_of_memory},
    {Call::map, Outcome::failed},
    {Call::record, Outcome::unsupported},
    {Call::query, Outcome::failed},
    {Call::wait, Outcome::failed},
    {Call::stream_wait, Outcome::failed},
    {Call::synchronize, Outcome::failed},
};

/// Runs the seed's program with the nth such call failing. False: it makes fewer of them.
bool survives(const Setup& setup, std::uint64_t seed, Failing failing, std::uint64_t nth,
              bool trace) {
  SeededChoices choices(seed);
  HeapModel model(setup, choices, trace);
  model.fail_once(failing.call, nth, {failing.outcome});
  for (int i = 0; i < program_length; ++i) model.step();
  const bool struck = model.device().calls(failing.call) >= nth;
  model.finish();
  return struck;
}

void fail_everywhere(HeapKind kind) {
  for_each_seed(3, [&](std::uint64_t seed, bool trace) {
    Setup setup;
    setup.kind = kind;
    setup.capacity = 48 * MiB;
    setup.largest = 12 * MiB;
    for (const Failing& failing : failures) {
      for (std::uint64_t nth = 1; survives(setup, seed, failing, nth, trace); ++nth) {
        if (nth > 40) nth += nth / 8;  // later ones are much like earlier ones
      }
    }
  });
}

}  // namespace

TEST_CASE("a failure at any point: native, in stream order", "[heap][faults]") {
  fail_everywhere(HeapKind::in_order);
}
TEST_CASE("a failure at any point: native, fenced", "[heap][faults]") {
  fail_everywhere(HeapKind::fenced);
}
TEST_CASE("a failure at any point: native, expandable", "[heap][faults]") {
  fail_everywhere(HeapKind::expandable);
}
TEST_CASE("a failure at any point: stream-ordered", "[heap][faults]") {
  fail_everywhere(HeapKind::stream_ordered);
}
