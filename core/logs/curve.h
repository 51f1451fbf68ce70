#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace core {

// What a loss is the mean of: a batch of training, or many batches of held-out text, which hardly
// vary.
enum class LossKind { training, evaluation };

// The losses of one run along its steps. Only what its end, its health and its shape need is kept:
// the last 1 % of the points, the lowest mean of ten, means of at most 512 stretches.
class Curve {
 public:
  // A loss that is not finite counts as a point of a run that may have diverged. A step before the
  // last one is that of a run that went on from an earlier checkpoint: what it does again is
  // forgotten.
  void add(double step, double loss);
  // A learning rate, to tell whether a run was stopped while it fell.
  void add_learning_rate(double rate);

  bool empty() const { return points_ == 0; }
  std::size_t points() const { return points_; }
  std::size_t not_finite() const { return not_finite_; }
  std::size_t went_back() const { return went_back_; }
  double last_step() const { return last_step_; }
  double step_interval() const { return interval_; }  // between the last two points

  // The loss at the end: the mean of the middle 80 % of the last 1 % of points. Of training losses
  // these are ten at least, but no more than a tenth of all; of evaluations one. NaN where none is
  // finite.
  double final_loss(LossKind kind) const;
  // The run from start to end as (step, loss): means of 128 to 512 stretches of as many points each,
  // of all points where they are fewer. Losses that are not finite are left out.
  std::vector<std::pair<double, double>> along() const;

  // "diverged: ..." or "". A run has diverged whose last loss is not finite, or whose
  // final loss is 10 % above its lowest (mean of ten points) having lost a quarter of what it had
  // gained.
  std::string why_diverged() const;
  // "unfinished: ..." or "". `total` counts the steps that the run was to take; where it is not
  // known, a learning rate that is still falling, with more than half of its peak left, tells.
  std::string why_unfinished(std::optional<double> total) const;

 private:
  struct Point {
    double step, loss;
  };
  struct Stretch {
    double steps = 0.0, losses = 0.0;  // sums
    std::size_t points = 0;
  };
  std::size_t window() const;
  void add_to_stretches(double step, double loss);

  std::deque<Point> tail_;
  std::size_t points_ = 0, not_finite_ = 0, went_back_ = 0;
  double last_step_ = 0.0, interval_ = 0.0;
  bool last_is_finite_ = true;
  std::optional<double> first_, lowest_;
  double block_sum_ = 0.0;
  std::size_t block_points_ = 0;
  std::vector<Stretch> stretches_;
  std::size_t points_a_stretch_ = 1;
  double peak_rate_ = 0.0, rate_before_ = 0.0, rate_ = 0.0;
};

}  // namespace core
