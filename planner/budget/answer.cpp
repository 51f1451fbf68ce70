#include "planner/budget/answer.h"

#include <fmt/format.h>

#include <algorithm>

namespace planner {

namespace {

// The best of a pool at the first or last size is no optimum.
void warn_of_edges(const BudgetSetup& setup, BudgetAnswer& answer) {
  const auto& q = setup.question;
  const auto& best = answer.chosen.choices[*answer.best];
  if (setup.size_is == SizeIs::fixed || q.sizes.size() < 3) return;
  const auto by_parameters = [](const Size& a, const Size& b) { return a.parameters < b.parameters; };
  const auto [least, most] = std::minmax_element(q.sizes.begin(), q.sizes.end(), by_parameters);
  const auto& size = q.sizes[best.size];
  if (size.parameters == most->parameters) {
    answer.warnings.push_back(fmt::format("the best size is the largest of those compared ({})", most->name));
  } else if (size.parameters == least->parameters) {
    answer.warnings.push_back(fmt::format("the best size is the smallest of those compared ({})", least->name));
  }
  const bool larger_do_not_fit = std::any_of(answer.chosen.bounded.begin(), answer.chosen.bounded.end(), [&](const Bounded& b) {
    return b.pool == best.pool && !b.loss_at_least && q.sizes[b.size].parameters > size.parameters;
  });
  if (larger_do_not_fit) {
    answer.warnings.push_back(
        "larger sizes were left out because no plan fits or nothing is left to train with: see bounded_sizes");
  }
}

// Few bits are judged against 16, and what is to be known of them is said with it.
void warn_of_no_baseline(const BudgetSetup& setup, BudgetAnswer& answer) {
  const auto& pools = setup.question.pools;
  if (std::any_of(pools.begin(), pools.end(), [](const Pool& p) { return p.recipe.is_baseline(); })) return;
  answer.warnings.push_back("no recipe of 16 bits is among those compared: whether fewer bits pay is not judged");
  const auto& recipe = pools[answer.chosen.choices[*answer.best].pool].recipe;
  if (!recipe.flag.empty()) answer.warnings.push_back(recipe.recipe + ": " + recipe.flag);
}

// Laws of dense models that count all parameters take experts for parameters that every token uses.
void warn_of_experts(const BudgetSetup& setup, BudgetAnswer& answer) {
  const auto& q = setup.question;
  for (const auto& size : q.sizes) {
    if (q.law.counts == LossModel::Counts::active || size.active >= size.parameters) continue;
    answer.warnings.push_back(
        fmt::format("{} uses {:.3g} of its {:.3g} parameters a token: {}, which counts all, takes its loss "
                    "for that of a dense model as large, and is too low",
                    size.name, size.active, size.parameters, q.law.name));
  }
}

// How far the answer rests on how fast repeated tokens lose their worth.
void warn_of_repeats(const BudgetSetup& setup, BudgetAnswer& answer) {
  const auto& q = setup.question;
  const auto& best = answer.chosen.choices[*answer.best];
  if (setup.other_repeats.empty() || !(best.training.tokens > *q.unique_tokens)) return;
  double low = best.loss, high = best.loss;
  const double D = best.training.tokens;
  for (const auto& other : setup.other_repeats) {
    const double loss = under(other.loss, q.pools[best.pool].recipe)(q.sizes[best.size].N, D, *q.unique_tokens);
    low = std::min(low, loss), high = std::max(high, loss);
  }
  answer.warnings.push_back(
      fmt::format("with other constants for repeated tokens that fit as well the best choice's loss is {:.4f} "
                  "to {:.4f}",
                  low, high));
}

}  // namespace

BudgetAnswer answer_budget(const BudgetSetup& setup, ChooseOptions options) {
  options.prune = options.prune && !setup.plans_all;
  const PlannedTimes planned(setup.pools, setup.models);
  const auto times = planned.times();
  const auto& q = setup.question;
  BudgetAnswer answer;
  answer.warnings = setup.warnings;
  answer.chosen = choose(q, times, options);
  add_intervals(q, answer.chosen);
  answer.best = best_of(answer.chosen);
  answer.pareto = pareto_of(answer.chosen);
  if (!answer.best) return answer;
  const auto& best = answer.chosen.choices[*answer.best];
  if (q.sizes.size() > 2) answer.spread = optimum_spread(q, answer.chosen, times, best.pool);
  answer.verdicts = verdicts_of(q, answer.chosen, times, setup.size_is);
  const auto far = extrapolations(q.law, q.sizes[best.size].N, best.training.tokens, best.training.flops);
  answer.warnings.insert(answer.warnings.end(), far.begin(), far.end());
  warn_of_edges(setup, answer);
  warn_of_no_baseline(setup, answer);
  warn_of_experts(setup, answer);
  warn_of_repeats(setup, answer);
  return answer;
}

}  // namespace planner
