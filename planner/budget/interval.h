#pragma once

#include <optional>

#include "planner/budget/choose.h"

namespace planner {

// Fills loss_low and loss_high of the choices: 90 % of the law's draws (the law itself where it has none), at the fast and the
// slow end of the predicted step time, with the recipe's factors at their best and worst.
void add_intervals(const BudgetQuestion& question, Chosen& chosen);

// Where the best of a pool lies under the draws of the law.
struct OptimumSpread {
  double parameters_low = 0.0, parameters_high = 0.0, tokens_low = 0.0, tokens_high = 0.0;  // 90 % of the draws
  std::size_t draws = 0;
};
// All sizes are taken to be as much slower than their lower bound as the planned ones are in the median. Nothing where the law
// has no draws or no size is planned.
std::optional<OptimumSpread> optimum_spread(const BudgetQuestion& question, const Chosen& chosen, const StepTimes& times,
                                            std::size_t pool);

// The value below which a share of the values lies, interpolated between them. Requires values.
double quantile(std::vector<double> values, double share);

}  // namespace planner
