#include "core/analyze/tune_rank.hpp"

#include <algorithm>
#include <tuple>

namespace fragshim {

namespace {

/// A retry waits for the device and gives the cache back. How long depends on the work that is
/// queued; this is what it took with 30 ms of it.
constexpr double retry_us = 30'640;

/// Costs that differ by less than this share and sum are alike: the sum is half a retry.
constexpr double alike_share = 0.1;
constexpr double alike_us = retry_us / 2;

using Rows = std::vector<const TuneRow*>;

bool much_dearer(double cost, double than) { return cost > than * (1 + alike_share) + alike_us; }

/// How well a row does what is asked for; equal ranks are told apart by their cost.
std::uint64_t rank(const Tuning& tuning, const TuneRow& row, Bytes least_needed) {
  if (tuning.capacity != unlimited) {
    if (row.completes()) return row.roomy ? 0 : 1;
    return 1 + row.failures;
  }
  if (row.needed == 0) return least_needed;
  return row.needed <= alike_need(least_needed) ? 0 : row.needed - least_needed;
}

/// Of the rows of one rank, in the order of simplicity: the first that is not much dearer than the
/// cheapest comes first, then the others by their cost.
void order_by_cost(Rows::iterator begin, Rows::iterator end) {
  const auto cheaper = [](const TuneRow* a, const TuneRow* b) {
    return tune_cost_us(*a) < tune_cost_us(*b);
  };
  const double least = tune_cost_us(**std::min_element(begin, end, cheaper));
  const auto winner = std::find_if(
      begin, end, [least](const TuneRow* row) { return !much_dearer(tune_cost_us(*row), least); });
  std::rotate(begin, winner, winner + 1);
  std::stable_sort(begin + 1, end, cheaper);
}

Rows rows_of(const Tuning& tuning, TunedAllocator allocator) {
  Rows out;
  for (const TuneRow& row : tuning.rows) {
    if (row.setting.allocator == allocator) out.push_back(&row);
  }
  return out;
}

}  // namespace

double tune_cost_us(const TuneRow& row) {
  return row.device_time_us + retry_us * static_cast<double>(row.retries);
}

std::vector<const TuneRow*> ranked_rows(const Tuning& tuning, TunedAllocator allocator) {
  Rows rows = rows_of(tuning, allocator);
  const Bytes least = tuning.least_needed(allocator);
  const auto rank_of = [&](const TuneRow* row) { return rank(tuning, *row, least); };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const TuneRow* a, const TuneRow* b) { return rank_of(a) < rank_of(b); });
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end = std::find_if(
        begin, rows.end(), [&](const TuneRow* row) { return rank_of(row) != rank_of(*begin); });
    order_by_cost(begin, end);
    begin = end;
  }
  return rows;
}

const TuneRow& Tuning::best(TunedAllocator allocator) const {
  return *ranked_rows(*this, allocator).front();
}

const TuneRow& Tuning::standard(TunedAllocator allocator) const {
  return *std::find_if(rows.begin(), rows.end(), [allocator](const TuneRow& row) {
    return row.setting.allocator == allocator && row.setting.conf.empty();
  });
}

Bytes Tuning::least_needed(TunedAllocator allocator) const {
  Bytes least = unlimited;
  for (const TuneRow& row : rows) {
    if (row.setting.allocator == allocator && row.needed != 0) least = std::min(least, row.needed);
  }
  return least;
}

}  // namespace fragshim
