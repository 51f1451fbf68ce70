#pragma once

#include <vector>

namespace fitting {

// y = intercept + slope x, by weighted least squares.
struct Line {
  double slope = 0.0, intercept = 0.0;
  double r2 = 0.0;
  double at(double x) const { return intercept + slope * x; }
};

// Requires as many y and weights as x, two of different x. Without weights all weigh alike.
Line line_through(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights = {});

// y = value + half_curvature (x - vertex)^2, by weighted least squares.
struct Parabola {
  double vertex = 0.0, value = 0.0, half_curvature = 0.0;  // not finite where fewer than three x differ
  double at(double x) const { return value + half_curvature * (x - vertex) * (x - vertex); }
};

// Over polynomials that are orthogonal on the points, so that x far from 0 (logarithms of sizes) lose no digits.
Parabola parabola_through(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights = {});

}  // namespace fitting
