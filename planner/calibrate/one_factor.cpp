#include "planner/calibrate/one_factor.h"

#include <cmath>

#include "simulator/check/summary.h"

namespace planner {

namespace {

// Repeats of a configuration would calibrate themselves.
bool calibrates(const Observations::Row& by, const Observations::Row& row) {
  return by.source == row.source && by.configuration != row.configuration;
}

}  // namespace

std::vector<std::optional<double>> errors_after_one_factor(const std::vector<Observations::Row>& rows,
                                                           const std::vector<double>& residuals) {
  std::vector<std::optional<double>> result;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> errors;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (calibrates(rows[k], rows[i])) errors.push_back(std::abs(std::expm1(residuals[i] - residuals[k])));
    }
    auto& error = result.emplace_back();
    if (!errors.empty()) error = simulator::quantile(std::move(errors), 0.5);
  }
  return result;
}

}  // namespace planner
