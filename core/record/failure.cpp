#include "core/record/failure.hpp"

#include <algorithm>

namespace fragshim {
namespace {

constexpr Bytes saturating_add(Bytes a, Bytes b) { return a > unlimited - b ? unlimited : a + b; }
constexpr Bytes minus(Bytes a, Bytes b) { return a > b ? a - b : 0; }

/// Follows the walk: the largest free blocks, and for each live block the free bytes next to it.
class EvidenceVisitor final : public BlockVisitor {
 public:
  EvidenceVisitor(FailureEvidence* evidence, StreamId stream)
      : evidence_(*evidence), stream_(stream) {}

  void visit(const BlockView& block) override {
    using State = BlockState;
    const bool joined = block.segment == segment_ && block.address == end_;
    if (!joined || !has_memory(block.state)) close_run();
    segment_ = block.segment;
    end_ = block.address + block.size;
    if (block.state == State::live) {
      close_pin();
      candidate_ = Pin{block.address, block.size, gap_};
      gap_ = 0;
    } else if (has_memory(block.state)) {
      gap_ += block.size;
      note_free(block);
    }
  }

  /// To be called behind the last block.
  void close_run() {
    close_pin();
    gap_ = 0;
  }

 private:
  void note_free(const BlockView& block) {
    const bool reachable = block.state == BlockState::free && block.stream == stream_;
    Bytes& largest = reachable ? evidence_.largest_reachable : evidence_.largest_bound;
    largest = std::max(largest, block.size);
  }

  /// The candidate's neighbourhood is known now: keep it if it is among the worst.
  void close_pin() {
    candidate_.pinned += gap_;
    if (candidate_.size != 0 && candidate_.pinned != 0) insert(candidate_);
    candidate_ = Pin{};
  }

  void insert(const Pin& pin) {
    const auto begin = evidence_.pins.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(evidence_.pin_count);
    const auto place = std::find_if(begin, end, [&](const Pin& p) { return worse(pin, p); });
    if (place == evidence_.pins.end()) return;
    const bool full = evidence_.pin_count == FailureEvidence::max_pins;
    std::move_backward(place, full ? end - 1 : end, full ? end : end + 1);
    *place = pin;
    if (!full) ++evidence_.pin_count;
  }

  /// A small block that pins much is worse than a large one beside as much.
  static bool worse(const Pin& a, const Pin& b) {
    // a.pinned - a.size > b.pinned - b.size, without going below zero.
    const Bytes left = a.pinned + b.size;
    const Bytes right = b.pinned + a.size;
    return left != right ? left > right : a.size < b.size;
  }

  FailureEvidence& evidence_;
  const StreamId stream_;
  Address segment_ = 0;
  Address end_ = 0;
  Bytes gap_ = 0;  // free bytes since the last live block
  Pin candidate_;
};

/// The evidence in the terms of the definitions.
struct Balance {
  explicit Balance(const FailureEvidence& e)
      : ours(std::max(e.held, e.usage.reserved)),
        card(e.device_total),
        others(minus(e.device_total, saturating_add(e.device_free, ours))),
        alive(ours - e.usage.reserved + e.usage.requested) {
    const bool limited = e.limit != 0 && e.limit != unlimited;
    room = limited ? std::min(e.device_free, minus(e.limit, ours)) : e.device_free;
    limit_binds = limited && room < e.device_free;
    capacity = limited ? std::min(e.limit, saturating_add(ours, e.device_free))
                       : saturating_add(ours, e.device_free);
    available = saturating_add(room, e.usage.cached());
  }

  Bytes ours;           // held from the device by every heap under this limit
  Bytes card;           // all the memory there is; 0: unknown
  Bytes others;         // held by anyone else: contexts, libraries, other processes
  Bytes alive;          // what the program wants; other heaps count with all they hold
  Bytes room = 0;       // what the device would still give
  Bytes capacity = 0;   // what this process could hold at most
  Bytes available = 0;  // free in sum
  bool limit_binds = false;
};

/// Enough is free in sum: what kept it from being used?
FailureClass why_unused(const FailureEvidence& e, const Balance& balance) {
  const Bytes rounded = std::max(e.rounded, e.request);
  const Bytes segment = std::max(e.segment_size, rounded);
  // A block in reach that is large enough was refused by a rule; nothing else can have been.
  if (e.largest_reachable >= e.request) return FailureClass::rounding;
  if (e.largest_bound >= rounded) return FailureClass::stream_bound;
  if (balance.room >= e.request && balance.room < segment) return FailureClass::rounding;
  return FailureClass::fragmentation;
}

/// Not enough is free: who has it?
FailureClass why_short(const FailureEvidence& e, const Balance& balance) {
  const Bytes wanted = saturating_add(balance.alive, e.request);
  if (balance.card != 0 && wanted > balance.card) return FailureClass::true_shortage;
  if (wanted <= balance.capacity) return FailureClass::rounding;  // lost inside live blocks
  const Bytes without_limit = saturating_add(e.device_free, e.usage.cached());
  if (balance.limit_binds && without_limit >= e.request) return FailureClass::limit;
  return balance.others > balance.ours ? FailureClass::outside_memory : FailureClass::true_shortage;
}

}  // namespace

std::string_view name(FailureClass failure) noexcept {
  switch (failure) {
    case FailureClass::fragmentation:
      return "fragmentation";
    case FailureClass::stream_bound:
      return "stream_bound";
    case FailureClass::rounding:
      return "rounding";
    case FailureClass::limit:
      return "limit";
    case FailureClass::outside_memory:
      return "outside_memory";
    case FailureClass::true_shortage:
      break;
  }
  return "true_shortage";
}

FailureEvidence gather_evidence(const Heap& heap, Bytes request, StreamId stream) noexcept {
  FailureEvidence evidence;
  evidence.request = request;
  evidence.usage = heap.usage();
  try {
    EvidenceVisitor visitor(&evidence, stream);
    heap.walk(visitor);
    visitor.close_run();
  } catch (...) {
    // Out of host memory: what is known so far has to do.
  }
  return evidence;
}

Failure classify(const FailureEvidence& evidence) noexcept {
  const Balance balance(evidence);
  Failure failure;
  failure.capacity = balance.capacity;
  failure.available = balance.available;
  failure.shortfall = minus(evidence.request, balance.available);
  failure.cause =
      failure.shortfall == 0 ? why_unused(evidence, balance) : why_short(evidence, balance);
  return failure;
}

}  // namespace fragshim
