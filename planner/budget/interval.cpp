#include "planner/budget/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace planner {

namespace {

constexpr double low_share = 0.05, high_share = 0.95;

double tokens_with(const BudgetQuestion& q, const SizeChoice& c, double step_s) {
  const auto training = training_for(q.pools[c.pool].means, q.sizes[c.size].active, step_s);
  CORE_ASSERT(training.has_value());
  return training->tokens;
}

double end_of(const BudgetQuestion& q, const SizeChoice& c, double step_s, End end, double share) {
  const double D = tokens_with(q, c, step_s), N = q.sizes[c.size].N, U = distinct(D, q.unique_tokens);
  const auto& recipe = q.pools[c.pool].recipe;
  if (q.law.draws.empty()) return under(q.law.loss, recipe, end)(N, D, U);
  std::vector<double> losses;
  for (const auto& draw : q.law.draws) losses.push_back(under(draw, recipe, end)(N, D, U));
  return quantile(std::move(losses), share);
}

// Step time over its lower bound: the median of the sizes that were planned. Plans of near sizes differ by what happens to
// divide, which is not what a law's draws are asked about.
double typical_over_least(const Chosen& chosen, const StepTimes& times, std::size_t pool) {
  std::vector<double> ratios;
  for (const auto& c : chosen.choices) {
    if (c.pool == pool) ratios.push_back(c.throughput.step_s / times.least(pool, c.size));
  }
  return quantile(std::move(ratios), 0.5);
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  CORE_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(values.size() - 1, below + 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

void add_intervals(const BudgetQuestion& q, Chosen& chosen) {
  for (auto& c : chosen.choices) {
    c.loss_low = std::min(c.loss, end_of(q, c, c.throughput.low_s, End::high, low_share));
    c.loss_high = std::max(c.loss, end_of(q, c, c.throughput.high_s, End::low, high_share));
  }
}

std::optional<OptimumSpread> optimum_spread(const BudgetQuestion& q, const Chosen& chosen, const StepTimes& times,
                                            std::size_t pool) {
  if (q.law.draws.empty() || !best_of_pool(chosen, pool)) return std::nullopt;
  const double over_least = typical_over_least(chosen, times, pool);
  std::vector<double> parameters, tokens;
  for (const auto& draw : q.law.draws) {
    const auto loss = under(draw, q.pools[pool].recipe);
    double least = std::numeric_limits<double>::infinity(), N = 0.0, D = 0.0;
    for (std::size_t i = 0; i < q.sizes.size(); ++i) {
      const auto& size = q.sizes[i];
      const auto training = training_for(q.pools[pool].means, size.active, over_least * times.least(pool, i));
      if (!training) continue;
      const double l = loss(size.N, training->tokens, distinct(training->tokens, q.unique_tokens));
      if (l < least) least = l, N = size.parameters, D = training->tokens;
    }
    parameters.push_back(N);
    tokens.push_back(D);
  }
  return OptimumSpread{quantile(parameters, low_share), quantile(parameters, high_share), quantile(tokens, low_share),
                       quantile(tokens, high_share), q.law.draws.size()};
}

}  // namespace planner
