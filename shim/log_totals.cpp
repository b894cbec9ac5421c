#include "shim/log_totals.hpp"

#include <algorithm>
#include <utility>

namespace fragshim::log {
namespace {

/// The counts that only ever grow.
void add_history(Counters& into, const Counters& from) {
  into.allocations += from.allocations;
  into.frees += from.frees;
  into.device_alloc += from.device_alloc;
  into.device_free += from.device_free;
  into.splits += from.splits;
  into.merges += from.merges;
  into.stitches += from.stitches;
  into.retries += from.retries;
  into.trims += from.trims;
  into.ooms += from.ooms;
  into.waits += from.waits;
}

/// What is held now, of heaps that live side by side.
void add_present(Usage& into, const Usage& from) {
  into.requested += from.requested;
  into.allocated += from.allocated;
  into.reserved += from.reserved;
  into.requested_peak += from.requested_peak;
  into.allocated_peak += from.allocated_peak;
  into.reserved_peak += from.reserved_peak;
  into.live_blocks += from.live_blocks;
  into.largest_free = std::max(into.largest_free, from.largest_free);
  into.releasable += from.releasable;
  into.pinned += from.pinned;
  into.pending += from.pending;
  into.segments += from.segments;
  into.free_blocks += from.free_blocks;
  into.streams += from.streams;
  for (std::size_t i = 0; i < into.free_histogram.size(); ++i) {
    into.free_histogram[i] += from.free_histogram[i];
  }
}

/// Peaks of heaps that lived one after the other.
void raise_peaks(Counters& into, const Counters& from) {
  into.requested_peak = std::max(into.requested_peak, from.requested_peak);
  into.allocated_peak = std::max(into.allocated_peak, from.allocated_peak);
  into.reserved_peak = std::max(into.reserved_peak, from.reserved_peak);
}

std::pair<int, HeapKind> key(const HeapSample& sample) { return {sample.device, sample.kind}; }

}  // namespace

void add_sample(std::vector<HeapSample>& samples, const HeapSample& sample) {
  for (HeapSample& other : samples) {
    if (key(other) != key(sample)) continue;
    add_history(other.usage, sample.usage);
    add_present(other.usage, sample.usage);
    other.device_time_us += sample.device_time_us;
    return;
  }
  samples.push_back(sample);
}

HeapTotal& Totals::entry(int device, HeapKind kind) {
  for (HeapTotal& total : entries_) {
    if (total.sample.device == device && total.sample.kind == kind) return total;
  }
  entries_.push_back({{device, kind, {}, 0}, {}});
  return entries_.back();
}

void Totals::observe(const HeapSample& now) {
  const Usage& usage = now.usage;
  const Waste waste{usage.reserved, usage.pinned, usage.releasable,
                    usage.allocated - usage.requested};
  Waste& worst = entry(now.device, now.kind).worst;
  if (waste.sum() > worst.sum()) worst = waste;
}

void Totals::retire(const HeapSample& last) {
  HeapSample& gone = entry(last.device, last.kind).sample;
  add_history(gone.usage, last.usage);
  raise_peaks(gone.usage, last.usage);
  gone.device_time_us += last.device_time_us;
}

std::vector<HeapTotal> Totals::all(const std::vector<HeapSample>& now) const {
  std::vector<HeapTotal> result = entries_;
  for (const HeapSample& sample : now) {
    const auto same = [&](const HeapTotal& total) { return key(total.sample) == key(sample); };
    const auto found = std::find_if(result.begin(), result.end(), same);
    if (found == result.end()) {
      result.push_back({sample, {}});
      continue;
    }
    HeapSample merged = sample;
    add_history(merged.usage, found->sample.usage);
    raise_peaks(merged.usage, found->sample.usage);
    merged.device_time_us += found->sample.device_time_us;
    found->sample = merged;
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return key(a.sample) < key(b.sample); });
  return result;
}

}  // namespace fragshim::log
