#include "fitting/best_sizes/akima.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "core/error.h"

namespace fitting {

Akima::Akima(std::vector<double> x, std::vector<double> y) {
  CORE_ASSERT(x.size() == y.size());
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] < x[b]; });
  std::vector<double> counts;
  for (const auto i : order) {
    if (x_.empty() || x[i] > x_.back()) {
      x_.push_back(x[i]), y_.push_back(0.0), counts.push_back(0.0);
    }
    y_.back() += y[i], counts.back() += 1.0;
  }
  for (std::size_t i = 0; i < y_.size(); ++i) y_[i] /= counts[i];
  CORE_ASSERT(x_.size() >= 3);
  // Slopes of the lines between neighbours, two more at either end as if a parabola went on.
  std::vector<double> m(2, 0.0);
  for (std::size_t i = 0; i + 1 < x_.size(); ++i) m.push_back((y_[i + 1] - y_[i]) / (x_[i + 1] - x_[i]));
  m[1] = 2.0 * m[2] - m[3], m[0] = 2.0 * m[1] - m[2];
  for (int i = 0; i < 2; ++i) m.push_back(2.0 * m[m.size() - 1] - m[m.size() - 2]);
  for (std::size_t i = 0; i < x_.size(); ++i) {
    const double after = std::fabs(m[i + 3] - m[i + 2]), before = std::fabs(m[i + 1] - m[i]);
    slopes_.push_back(after + before > 1e-12 ? (after * m[i + 1] + before * m[i + 2]) / (after + before) : 0.5 * (m[i + 1] + m[i + 2]));
  }
}

// Hermite's cubic.
double Akima::within(std::size_t i, double s) const {
  const double h = x_[i + 1] - x_[i], r = 1.0 - s;
  return (1.0 + 2.0 * s) * r * r * y_[i] + s * r * r * h * slopes_[i] + s * s * (3.0 - 2.0 * s) * y_[i + 1] - s * s * r * h * slopes_[i + 1];
}

double Akima::at(double x) const {
  const auto after = std::upper_bound(x_.begin(), x_.end(), x) - x_.begin();
  const auto i = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(after - 1, 0, static_cast<std::ptrdiff_t>(x_.size()) - 2));
  return within(i, (x - x_[i]) / (x_[i + 1] - x_[i]));
}

// At a point, or where the derivative of a cubic vanishes: 3 a s^2 + 2 b s + c = 0.
double Akima::minimum() const {
  double best = x_.front(), least = y_.front();
  const auto consider = [&](double x, double y) {
    if (y < least) best = x, least = y;
  };
  for (std::size_t i = 0; i + 1 < x_.size(); ++i) {
    const double h = x_[i + 1] - x_[i], rise = y_[i + 1] - y_[i], c = h * slopes_[i], d = h * slopes_[i + 1];
    const double a = c + d - 2.0 * rise, b = 3.0 * rise - 2.0 * c - d;
    const double inside = b * b - 3.0 * a * c;
    if (inside >= 0.0) {
      const double q = -(b + std::copysign(std::sqrt(inside), b));
      for (const double s : {a != 0.0 ? q / (3.0 * a) : -1.0, q != 0.0 ? c / q : -1.0}) {
        if (s > 0.0 && s < 1.0) consider(x_[i] + s * h, within(i, s));
      }
    }
    consider(x_[i + 1], y_[i + 1]);
  }
  return best;
}

}  // namespace fitting
