#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/budget/interval.h"
#include "planner/budget/question.h"

namespace planner {

// What a budget came to.
struct BudgetAnswer {
  Chosen chosen;
  std::optional<std::size_t> best;  // of chosen.choices
  std::vector<std::size_t> pareto;
  std::optional<OptimumSpread> spread;
  std::vector<Verdict> verdicts;
  std::vector<std::string> warnings;
  double elapsed_s = 0.0;
};

// Plans the sizes of a request's pools and judges what is found.
BudgetAnswer answer_budget(const BudgetSetup& setup, ChooseOptions options = {});

}  // namespace planner
