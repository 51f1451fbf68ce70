#include "fitting/runs/outliers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fitting {
namespace {

constexpr double far = 10.0;        // typical residuals
constexpr double least = 0.01;      // relative, below which nobody minds
constexpr std::size_t one_in = 20;  // rows
constexpr std::int64_t starts = 60;

double typical(std::vector<double> residuals) {
  for (double& r : residuals) r = std::fabs(r);
  const auto middle = residuals.begin() + std::ssize(residuals) / 2;
  std::nth_element(residuals.begin(), middle, residuals.end());
  return 1.4826 * *middle;
}

}  // namespace

std::optional<Outliers> outliers_of(const Solver& solver, const std::vector<double>& parameters) {
  const auto residuals = solver.residuals(parameters);
  const double limit = std::max(far * typical(residuals), least);
  Outliers found;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (std::fabs(residuals[i]) > limit) found.rows.push_back(i);
  }
  if (found.rows.empty() || found.rows.size() * one_in > residuals.size()) return std::nullopt;
  std::vector<double> weights(residuals.size(), 1.0);
  for (const auto row : found.rows) weights[row] = 0.0;
  std::stable_sort(found.rows.begin(), found.rows.end(), [&](auto a, auto b) { return std::fabs(residuals[a]) > std::fabs(residuals[b]); });
  for (const auto row : found.rows) found.residuals.push_back(residuals[row]);
  auto minimum = solver.from(parameters, weights);
  for (auto& basin : solver.from_starts(starts_of(solver.law(), starts), weights)) {
    if (basin.minimum.objective < minimum.objective) minimum = std::move(basin.minimum);
  }
  found.parameters = std::move(minimum.parameters);
  return found;
}

}  // namespace fitting
