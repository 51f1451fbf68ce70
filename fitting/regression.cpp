#include "fitting/regression.h"

#include <cmath>
#include <cstddef>
#include <functional>

#include "core/error.h"

namespace fitting {
namespace {

// sum_i w_i f(i).
double sum(std::size_t n, const std::vector<double>& weights, const std::function<double(std::size_t)>& f) {
  double total = 0.0;
  for (std::size_t i = 0; i < n; ++i) total += (weights.empty() ? 1.0 : weights[i]) * f(i);
  return total;
}

}  // namespace

Line line_through(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights) {
  CORE_ASSERT(x.size() == y.size() && (weights.empty() || weights.size() == x.size()));
  const auto mean = [&](const std::vector<double>& v) {
    return sum(x.size(), weights, [&](auto i) { return v[i]; }) / sum(x.size(), weights, [](auto) { return 1.0; });
  };
  const double mx = mean(x), my = mean(y);
  const double xx = sum(x.size(), weights, [&](auto i) { return (x[i] - mx) * (x[i] - mx); });
  const double xy = sum(x.size(), weights, [&](auto i) { return (x[i] - mx) * (y[i] - my); });
  const double yy = sum(x.size(), weights, [&](auto i) { return (y[i] - my) * (y[i] - my); });
  const double slope = xy / xx;
  return {slope, my - slope * mx, yy > 0.0 ? xy * xy / (xx * yy) : 1.0};
}

// Forsythe 1957: p1 = x - mean, p2 = p1^2 - s p1 - t, orthogonal to each other and to 1.
Parabola parabola_through(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights) {
  CORE_ASSERT(x.size() == y.size() && (weights.empty() || weights.size() == x.size()));
  const auto n = x.size();
  const double total = sum(n, weights, [](auto) { return 1.0; });
  const double mx = sum(n, weights, [&](auto i) { return x[i]; }) / total, my = sum(n, weights, [&](auto i) { return y[i]; }) / total;
  const auto p1 = [&](std::size_t i) { return x[i] - mx; };
  const double square = sum(n, weights, [&](auto i) { return p1(i) * p1(i); });
  const double s = sum(n, weights, [&](auto i) { return p1(i) * p1(i) * p1(i); }) / square, t = square / total;
  const auto p2 = [&](std::size_t i) { return p1(i) * p1(i) - s * p1(i) - t; };
  const double c1 = sum(n, weights, [&](auto i) { return p1(i) * (y[i] - my); }) / square;
  const double of_p2 = sum(n, weights, [&](auto i) { return p2(i) * p2(i); });
  if (!(of_p2 > 1e-12 * square * square / total)) return {NAN, NAN, NAN};
  const double c2 = sum(n, weights, [&](auto i) { return p2(i) * (y[i] - my); }) / of_p2;
  const double at = 0.5 * (s - c1 / c2);  // of p1
  return {mx + at, my + c1 * at + c2 * (at * at - s * at - t), c2};
}

}  // namespace fitting
