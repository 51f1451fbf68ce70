#pragma once

#include <string>

#include "planner/budget/answer.h"

namespace planner {

struct BudgetReport {
  const BudgetRequest& request;
  const BudgetSetup& setup;
  const BudgetAnswer& answer;
  bool reproducible = false;  // leave out elapsed_s
};
std::string budget_table(const BudgetReport& report);
std::string budget_json(const BudgetReport& report);
std::string budget_csv(const BudgetReport& report);
std::string budget_markdown(const BudgetReport& report);

}  // namespace planner
