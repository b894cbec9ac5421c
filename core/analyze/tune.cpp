#include "core/analyze/tune.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "core/analyze/replay.hpp"
#include "core/analyze/tune_rank.hpp"

namespace fragshim {

namespace {

constexpr std::size_t most_shown = 6;  // rows of each allocator in the table

using Rows = std::vector<TuneRow*>;

bool same_figures(const TuneRow& a, const TuneRow& b) {
  return a.reserved_peak == b.reserved_peak && a.failures == b.failures && a.retries == b.retries &&
         a.device_time_us == b.device_time_us;
}

class Tuner {
 public:
  Tuner(const std::vector<TuneTrace>& traces, const TuneOptions& options)
      : traces_(traces), options_(options) {
    for (const TuneTrace& trace : traces) {
      tuning_.requested_peak = std::max(tuning_.requested_peak, trace.steps.requested_peak());
    }
    tuning_.capacity = options.capacity;
    step_ = std::max(round_up(tuning_.requested_peak / 512, 2 * MiB), 2 * MiB);
  }

  Tuning run() {
    for (TuneSetting& setting : tune_settings(ladder_base(), limited())) {
      tuning_.rows.emplace_back().setting = std::move(setting);
    }
    Rows all;
    for (TuneRow& row : tuning_.rows) all.push_back(&row);
    for_each(all, [this](TuneRow& row) { try_setting(row); });
    find_least(all);
    choose_shown();
    Rows missing;
    for (TuneRow* row : all) {
      if (row->shown && row->needed == 0) missing.push_back(row);
    }
    for_each(missing, [this](TuneRow& row) { search(row); });
    tuning_.replays = replays_;
    return std::move(tuning_);
  }

 private:
  bool limited() const { return options_.capacity != unlimited; }

  /// What a sixth is taken of: the capacity, else what the default setting reserves.
  Bytes ladder_base() {
    if (limited()) return options_.capacity;
    TuneRow row;
    try_setting(row);
    return row.reserved_peak;
  }

  ReplayResult replay_trace(const TuneTrace& trace, const TuneSetting& setting, Bytes capacity,
                            bool to_the_end) {
    ReplayOptions options;
    options.policy = setting.policy;
    options.config = setting.config;
    options.capacity = capacity;
    options.stop_at_failure = !to_the_end;
    options.most_classified = 0;
    const std::uint64_t done = ++replays_;
    ReplayResult result = replay(trace.steps, options);
    if (options_.progress) {
      const std::lock_guard<std::mutex> lock(progress_mutex_);
      options_.progress(done);
    }
    return result;
  }

  bool completes(const TuneSetting& setting, Bytes capacity) {
    return std::all_of(traces_.begin(), traces_.end(), [&](const TuneTrace& trace) {
      return replay_trace(trace, setting, capacity, false).ooms == 0;
    });
  }

  void try_setting(TuneRow& row) {
    for (const TuneTrace& trace : traces_) {
      const ReplayResult r = replay_trace(trace, row.setting, options_.capacity, true);
      row.reserved_peak = std::max(row.reserved_peak, r.reserved_peak);
      row.failures += r.ooms;
      row.retries += r.retries;
      row.device_time_us += r.device_time_us;
    }
    row.roomy = !limited() || (row.completes() && completes(row.setting, roomy_part(limit())));
  }

  Bytes limit() const { return options_.capacity; }

  /// The smallest capacity, found by halving the range above what is alive at once. What serves a
  /// request does not always grow with the capacity: the result is one that was tried.
  void search(TuneRow& row) {
    Bytes enough = row.completes() ? row.reserved_peak : uncapped_peak(row.setting);
    enough = round_up(enough, 2 * MiB);
    for (int i = 0; !completes(row.setting, enough); ++i) {
      if (i == 8) return;
      enough = round_up(enough + enough / 8, 2 * MiB);
    }
    Bytes low = round_down(std::min(tuning_.requested_peak, enough), 2 * MiB);
    while (enough - low > step_) {
      const Bytes middle = round_up(low + (enough - low) / 2, 2 * MiB);
      if (middle >= enough) break;
      (completes(row.setting, middle) ? enough : low) = middle;
    }
    row.needed = enough;
  }

  Bytes uncapped_peak(const TuneSetting& setting) {
    Bytes peak = 0;
    for (const TuneTrace& trace : traces_) {
      peak = std::max(peak, replay_trace(trace, setting, unlimited, true).reserved_peak);
    }
    return peak;
  }

  /// Looks for the least capacity of each allocator: first of a few settings that tend to be
  /// good, then of those only that complete in less than these, or, where the need is what counts,
  /// in about as much.
  void find_least(const Rows& all) {
    Rows first;
    for (TuneRow* row : all) {
      const std::string& conf = row->setting.conf;
      if (conf.empty() || conf == "expandable_segments:True") first.push_back(row);
    }
    for_each(first, [this](TuneRow& row) { search(row); });
    const Bytes least[] = {tuning_.least_needed(TunedAllocator::pytorch),
                           tuning_.least_needed(TunedAllocator::fragshim)};
    for_each(all, [this, &least](TuneRow& row) {
      const Bytes known = least[static_cast<int>(row.setting.allocator)];
      if (row.needed != 0 || known <= step_ || known == unlimited) return;
      if (completes(row.setting, limited() ? known - step_ : alike_need(known))) search(row);
    });
  }

  /// The default and the best few of each allocator; of those with the same figures one.
  void choose_shown() {
    for (TuneRow& row : tuning_.rows) row.shown = row.setting.conf.empty();
    for (const TunedAllocator allocator : {TunedAllocator::pytorch, TunedAllocator::fragshim}) {
      std::vector<const TuneRow*> shown;
      for (const TuneRow* row : ranked_rows(tuning_, allocator)) {
        const bool known = std::any_of(shown.begin(), shown.end(), [row](const TuneRow* other) {
          return same_figures(*row, *other);
        });
        if (known || shown.size() == most_shown) continue;
        shown.push_back(row);
        tuning_.rows[static_cast<std::size_t>(row - tuning_.rows.data())].shown = true;
      }
    }
  }

  /// Calls `work` with every row, on all threads.
  template <typename Work>
  void for_each(const Rows& rows, const Work& work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto run = [&] {
      try {
        for (std::size_t i = next++; i < rows.size(); i = next++) work(*rows[i]);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(failure_mutex);
        failure = std::current_exception();
      }
    };
    std::vector<std::thread> helpers;
    const std::size_t wanted = std::min<std::size_t>(options_.threads, rows.size());
    for (std::size_t i = 1; i < wanted; ++i) helpers.emplace_back(run);
    run();
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
  }

  const std::vector<TuneTrace>& traces_;
  const TuneOptions& options_;
  Bytes step_;  // how closely capacities are looked for
  Tuning tuning_;
  std::atomic<std::uint64_t> replays_{0};
  std::mutex progress_mutex_;
};

}  // namespace

Tuning tune(const std::vector<TuneTrace>& traces, const TuneOptions& options) {
  return Tuner(traces, options).run();
}

}  // namespace fragshim
