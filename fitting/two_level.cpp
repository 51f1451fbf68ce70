#include "fitting/two_level.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace fitting {

namespace {

constexpr int iterations = 200;
// Least variance between groups: a hundredth of a percent keeps the weights of equal means finite.
constexpr double least_variance = 1e-8;

double sum_of(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

// (sum w)^2 / sum w^2: as many equal weights would tell as much.
double effective(const std::vector<double>& weights) {
  const double sum = sum_of(weights);
  const double squares = std::inner_product(weights.begin(), weights.end(), weights.begin(), 0.0);
  return squares > 0.0 ? sum * sum / squares : 0.0;
}

double mean_of(const ValueGroup& group) {
  return std::inner_product(group.values.begin(), group.values.end(), group.weights.begin(), 0.0) / sum_of(group.weights);
}

// Unbiased variance of a group's values; nothing for fewer than two.
std::optional<double> variance_of(const ValueGroup& group) {
  const double n = effective(group.weights);
  if (group.values.size() < 2 || n <= 1.0) return std::nullopt;
  const double mean = mean_of(group);
  double sum = 0.0;
  for (std::size_t i = 0; i < group.values.size(); ++i) sum += group.weights[i] * std::pow(group.values[i] - mean, 2);
  return sum / sum_of(group.weights) * n / (n - 1.0);
}

// Means of groups with weights that sum to the effective number of groups.
struct Means {
  std::vector<double> values, weights;
  double effective = 0.0;
};

Means means_of(const std::vector<ValueGroup>& groups) {
  Means means;
  for (const auto& group : groups) {
    CORE_ASSERT(!group.values.empty() && group.values.size() == group.weights.size() && group.weight > 0.0);
    means.values.push_back(mean_of(group));
    means.weights.push_back(group.weight);
  }
  means.effective = effective(means.weights);
  const double scale = means.effective / sum_of(means.weights);
  for (auto& weight : means.weights) weight *= scale;
  return means;
}

double within_variance(const std::vector<ValueGroup>& groups, const Means& means, const std::optional<TwoLevelPrior>& prior) {
  double sum = prior ? prior->groups * prior->of.within * prior->of.within : 0.0, weight = prior ? prior->groups : 0.0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (const auto variance = variance_of(groups[i])) {
      sum += means.weights[i] * *variance;
      weight += means.weights[i];
    }
  }
  return weight > 0.0 ? sum / weight : 0.0;
}

// The level between groups, and how many groups say so.
struct Between {
  double centre = 0.0, variance = least_variance, groups = 0.0;
};

// Mean and variance as under a normal distribution, where the iterations begin.
Between moments_of(const Means& means) {
  Between b;
  for (std::size_t i = 0; i < means.values.size(); ++i) b.centre += means.weights[i] * means.values[i] / means.effective;
  for (std::size_t i = 0; i < means.values.size(); ++i) {
    b.variance += means.weights[i] * std::pow(means.values[i] - b.centre, 2) / means.effective;
  }
  return b;
}

// One step of expectation maximisation: groups far out for the spread so far count less. `known` counts as so many groups more.
Between improved(const Between& now, const Means& means, const Between& known, double degrees) {
  const double variance = std::max(now.variance, least_variance);
  double weight = known.groups, sum = known.groups * known.centre;
  std::vector<double> inlier(means.values.size());
  for (std::size_t i = 0; i < inlier.size(); ++i) {
    inlier[i] = means.weights[i] * (degrees + 1.0) / (degrees + std::pow(means.values[i] - now.centre, 2) / variance);
    weight += inlier[i];
    sum += inlier[i] * means.values[i];
  }
  Between next;
  next.centre = sum / weight;
  double squares = known.groups * (known.variance + std::pow(next.centre - known.centre, 2));
  for (std::size_t i = 0; i < inlier.size(); ++i) squares += inlier[i] * std::pow(means.values[i] - next.centre, 2);
  // The centre is estimated from the groups themselves where nothing else says it.
  const double freedom = known.groups > 0.0 ? known.groups + means.effective : means.effective - 1.0;
  next.variance = std::max(squares / std::max(freedom, 0.5), least_variance);
  return next;
}

double quantile_of_t(double degrees, double q) { return boost::math::quantile(boost::math::students_t(degrees), q); }
double quantile_of_normal(double q) { return boost::math::quantile(boost::math::normal(), q); }

}  // namespace

TwoLevel two_level(const std::vector<ValueGroup>& groups, double degrees, const std::optional<TwoLevelPrior>& prior) {
  CORE_ASSERT(prior || groups.size() >= 2);
  if (groups.empty()) return prior->of;
  const auto means = means_of(groups);
  const auto known = prior ? Between{prior->of.centre, prior->of.between * prior->of.between, prior->groups} : Between{};
  auto between = prior ? known : moments_of(means);
  for (int step = 0; step < iterations; ++step) between = improved(between, means, known, degrees);
  return {between.centre, std::sqrt(between.variance), std::sqrt(within_variance(groups, means, prior)),
          known.groups + means.effective};
}

CentralInterval interval_of_new_group(const TwoLevel& e, double degrees, double share) {
  CORE_ASSERT(share > 0.0 && share < 1.0 && e.groups > 0.0);
  const double q = 0.5 + 0.5 * share;
  const double group = quantile_of_t(degrees, q) * e.between, value = quantile_of_normal(q) * e.within;
  const double half = std::sqrt(group * group * (1.0 + 1.0 / e.groups) + value * value);
  return {e.centre - half, e.centre + half};
}

double weighted_quantile(std::vector<double> values, std::vector<double> weights, double q) {
  CORE_ASSERT(!values.empty() && values.size() == weights.size());
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const double total = sum_of(weights);
  double before = 0.0, last_share = 0.0, last = values[order.front()];
  for (const auto i : order) {
    const double share = (before + 0.5 * weights[i]) / total;
    if (q <= share) return share > last_share ? last + (values[i] - last) * (q - last_share) / (share - last_share) : values[i];
    before += weights[i], last_share = share, last = values[i];
  }
  return last;
}

}  // namespace fitting
