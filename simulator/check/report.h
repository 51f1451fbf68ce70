#pragma once

#include <string>
#include <vector>

#include "simulator/check/check.h"
#include "simulator/check/plan_choice.h"
#include "simulator/check/summary.h"

namespace simulator {

// Everything that a check found, ready to be printed.
struct CheckReport {
  std::vector<CheckedRow> rows;
  std::vector<PlanGroup> groups;
  std::vector<std::string> failures;  // one sentence each: what is worse than was asked for
  std::vector<std::string> remarks;   // what does not fail but should be seen
  std::optional<double> elapsed_s;
};

// `baseline` and reports agree in how they name rows and sources. Formats: table, json, csv,
// markdown, junit.
std::string check_table(const CheckReport& report);
std::string check_markdown(const CheckReport& report);
std::string check_json(const CheckReport& report);
std::string check_csv(const CheckReport& report);
std::string check_junit(const CheckReport& report);

}  // namespace simulator
