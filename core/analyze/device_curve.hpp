// When during a run the driver's time was spent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragshim {

/// Keeps some thousand points however many are added: of a longer run, fewer of each second.
class DeviceCurve {
 public:
  /// `spent_us` microseconds were spent by the time `time_ns`. Neither ever falls.
  void add(std::int64_t time_ns, double spent_us) {
    if (added_++ % stride_ != 0) return;
    points_.push_back({time_ns, spent_us});
    if (points_.size() < most_points) return;
    for (std::size_t i = 1; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
    points_.resize(points_.size() / 2);
    stride_ *= 2;
  }

  /// What was spent by `time_ns`, in microseconds: on straight lines between the points.
  double spent_by(std::int64_t time_ns) const {
    const auto after = std::find_if(points_.begin(), points_.end(), [time_ns](const Point& point) {
      return point.time_ns >= time_ns;
    });
    if (after == points_.end()) return points_.empty() ? 0 : points_.back().spent_us;
    if (after == points_.begin()) return after->spent_us;
    const Point& before = *(after - 1);
    const auto part = static_cast<double>(time_ns - before.time_ns);
    const auto whole = static_cast<double>(after->time_ns - before.time_ns);
    return before.spent_us + part / whole * (after->spent_us - before.spent_us);
  }

 private:
  struct Point {
    std::int64_t time_ns;
    double spent_us;
  };
  static constexpr std::size_t most_points = 8192;

  std::vector<Point> points_;
  std::uint64_t stride_ = 1;
  std::uint64_t added_ = 0;
};

}  // namespace fragshim
