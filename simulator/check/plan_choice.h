#pragma once

#include <string>
#include <vector>

#include "simulator/check/check.h"

namespace simulator {

// Plans that were measured for the same question (source, model, GPUs, batch, precision), ranked by
// their predictions.
struct PlanGroup {
  std::string source, what;  // "gpt 24x1024, sequence 1024, 8 x a100-sxm-80, batch 64"
  std::size_t plans = 0;
  double first_extra = 0.0;          // measured time of the plan ranked first over the fastest, - 1
  double best_of_three_extra = 0.0;  // of the fastest of the first three
  bool fastest_in_first_three = false;
  double kendall_tau = 0.0;  // tau-b, 1 = the same order
};

// Groups of at least `least` different plans with measured times, in the order of their first rows.
// Of a plan that was measured more than once the mean counts.
std::vector<PlanGroup> plan_groups(const std::vector<CheckedRow>& rows, std::size_t least = 4);

// Kendall's tau-b of two rankings (Kendall 1945): pairs in the same order less pairs in the
// opposite one, over the geometric mean of the pairs that are not tied in each. 0 where all are
// tied. Requires equal sizes.
double kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace simulator
