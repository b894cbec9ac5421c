#include "core/analyze/low_water.hpp"

#include <algorithm>
#include <array>

namespace fragshim {

void Swings::add(Bytes level) {
  if (falling_) {
    low_ = std::min(low_, level);
  } else {
    high_ = std::max(high_, level);
  }
  const Bytes fall = high_ - (falling_ ? low_ : level);
  deepest_ = std::max(deepest_, fall);
  if (falling_ && level - low_ > deepest_ / 2) {
    falling_ = false;
    high_ = level;
    ++count_;
  } else if (!falling_ && fall > deepest_ / 2) {
    falling_ = true;
    low_ = level;
  }
}

void LowWater::add(double seconds, Bytes held) {
  swings_.add(held);
  if (bins_.empty() || in_last_ == per_bin_) {
    if (bins_.size() == most_bins) merge_pairs();
    bins_.push_back({seconds, held, swings_.count()});
    in_last_ = 1;
    return;
  }
  if (held < bins_.back().held) bins_.back() = {seconds, held, swings_.count()};
  ++in_last_;
}

void LowWater::merge_pairs() {
  for (std::size_t i = 0; i < most_bins / 2; ++i) {
    const Bin& left = bins_[2 * i];
    const Bin& right = bins_[2 * i + 1];
    bins_[i] = right.held < left.held ? right : left;
  }
  bins_.resize(most_bins / 2);
  per_bin_ *= 2;
}

std::optional<LowWater::Growth> LowWater::growth() const {
  const std::size_t skipped = bins_.size() / 4;
  const std::size_t window = (bins_.size() - skipped) / windows;
  if (window < 2) return std::nullopt;
  std::array<Bin, windows> least{};
  for (std::size_t i = 0; i < windows; ++i) {
    const auto begin = bins_.end() - static_cast<std::ptrdiff_t>((windows - i) * window);
    least[i] = *std::min_element(begin, begin + static_cast<std::ptrdiff_t>(window),
                                 [](const Bin& a, const Bin& b) { return a.held < b.held; });
  }
  std::size_t rises = 0;
  for (std::size_t i = 1; i < windows; ++i) {
    if (least[i].held < least[i - 1].held) return std::nullopt;
    rises += least[i].held > least[i - 1].held ? 1 : 0;
  }
  const Bin& first = least.front();
  const Bin& last = least.back();
  const bool much = last.held - first.held >= std::max(MiB, last.held / 50);
  if (rises < windows - 2 || !much || last.seconds <= first.seconds) return std::nullopt;
  return Growth{first.held, last.held, last.seconds - first.seconds,
                last.iteration - first.iteration};
}

}  // namespace fragshim
