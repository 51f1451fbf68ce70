#include "core/logs/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace core {

namespace {

constexpr std::size_t block_of_lowest = 10;
constexpr std::size_t longest_tail = std::size_t{1} << 18;
constexpr std::size_t most_stretches = 512;
constexpr double above_lowest = 1.1;  // ends at so many times its lowest loss, and
constexpr double gain_lost = 0.25;    // having lost this part of its fall
constexpr double half_of_peak = 0.5;

}  // namespace

// Its first point only ever moves forwards, so that what was let go is not missed.
std::size_t Curve::window() const {
  return std::max(points_ / 100, std::min<std::size_t>(10, (points_ + 9) / 10));
}

void Curve::add(double step, double loss) {
  if (points_ > 0 && step <= last_step_) {
    const bool again = step == last_step_;
    while (!tail_.empty() && tail_.back().step >= step) tail_.pop_back(), --points_;
    if (!again) ++went_back_;
    while (!stretches_.empty() && stretches_.back().steps >= step * static_cast<double>(stretches_.back().points))
      stretches_.pop_back();
  } else if (points_ > 0) {
    interval_ = step - last_step_;
  }
  last_step_ = step;
  ++points_;
  last_is_finite_ = std::isfinite(loss);
  tail_.push_back({step, loss});
  while (tail_.size() > std::min(window(), longest_tail)) tail_.pop_front();
  if (!last_is_finite_) {
    ++not_finite_;
    return;
  }
  add_to_stretches(step, loss);
  if (!first_) first_ = loss;
  block_sum_ += loss, ++block_points_;
  if (block_points_ < block_of_lowest) return;
  const double mean = block_sum_ / static_cast<double>(block_points_);
  lowest_ = std::min(lowest_.value_or(mean), mean);
  block_sum_ = 0.0, block_points_ = 0;
}

// Where they are too many, neighbours become one.
void Curve::add_to_stretches(double step, double loss) {
  if (stretches_.empty() || stretches_.back().points >= points_a_stretch_) {
    if (stretches_.size() >= most_stretches) {
      for (std::size_t i = 0; i < most_stretches / 2; ++i) {
        const auto &a = stretches_[2 * i], &b = stretches_[2 * i + 1];
        stretches_[i] = {a.steps + b.steps, a.losses + b.losses, a.points + b.points};
      }
      stretches_.resize(most_stretches / 2);
      points_a_stretch_ *= 2;
    }
    stretches_.emplace_back();
  }
  auto& last = stretches_.back();
  last.steps += step, last.losses += loss, ++last.points;
}

std::vector<std::pair<double, double>> Curve::along() const {
  std::vector<std::pair<double, double>> means;
  for (const auto& stretch : stretches_) {
    const auto points = static_cast<double>(stretch.points);
    means.emplace_back(stretch.steps / points, stretch.losses / points);
  }
  return means;
}

void Curve::add_learning_rate(double rate) {
  if (!(rate >= 0.0)) return;
  peak_rate_ = std::max(peak_rate_, rate);
  rate_before_ = rate_, rate_ = rate;
}

double Curve::final_loss(LossKind kind) const {
  std::vector<double> losses;
  const auto wanted =
      kind == LossKind::training ? tail_.size() : std::max<std::size_t>(1, points_ / 100);
  for (std::size_t i = tail_.size() - std::min(wanted, tail_.size()); i < tail_.size(); ++i) {
    if (std::isfinite(tail_[i].loss)) losses.push_back(tail_[i].loss);
  }
  if (losses.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(losses.begin(), losses.end());
  const auto cut = static_cast<std::ptrdiff_t>(losses.size() / 10);
  const auto first = losses.begin() + cut, last = losses.end() - cut;
  return std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

std::string Curve::why_diverged() const {
  if (points_ == 0) return {};
  if (!last_is_finite_)
    return fmt::format("diverged: its loss at step {:.0f} is not finite", last_step_);
  // The lowest single points of a run of fewer than ten.
  const double lowest = lowest_.value_or(first_.value_or(0.0)),
               final = final_loss(LossKind::training);
  const double fall = std::max(0.0, first_.value_or(lowest) - lowest);
  if (final > above_lowest * lowest && final - lowest > gain_lost * fall)
    return fmt::format("diverged: its loss ends at {:.4g}, its lowest was {:.4g}", final, lowest);
  return {};
}

std::string Curve::why_unfinished(std::optional<double> total) const {
  if (points_ == 0) return {};
  if (total && last_step_ + std::max(1.0, interval_) < *total)
    return fmt::format("unfinished: ends at step {:.0f} of {:.0f}", last_step_, *total);
  if (!total && rate_ < rate_before_ && rate_ < peak_rate_ && rate_ > half_of_peak * peak_rate_) {
    return fmt::format("unfinished: its learning rate is still falling, at {:.0f} % of its peak",
                       100.0 * rate_ / peak_rate_);
  }
  return {};
}

}  // namespace core
