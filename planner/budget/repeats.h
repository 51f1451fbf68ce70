#pragma once

#include <string>
#include <vector>

#include "planner/budget/loss.h"

namespace planner {

// How fast repeated tokens and parameters beyond what distinct tokens ask for lose their worth: R_D* and R_N* of Muennighoff
// et al. 2023 (arXiv 2305.16264).
struct RepeatConstants {
  double tokens = 0.0, parameters = 0.0;
};

// data/repeats.json.
struct Repeats {
  RepeatConstants constants;
  std::vector<RepeatConstants> others;  // that fit the same runs as well
  std::string source, warning;
};
Repeats load_repeats();

// A law where repeated tokens count less (Muennighoff et al. 2023, Eq. 5 and 6), over any law of N and D:
//   R_D = D / U - 1, D' = U + U R_D* (1 - exp(-R_D / R_D*))
//   U_N = min(N, N_opt(U)), R_N = N / U_N - 1, N' = U_N + U_N R_N* (1 - exp(-R_N / R_N*)),   L(N', D')
// N_opt(U) is the number of parameters of which U tokens are the compute-optimal number.
LossModel with_repeats(const LossModel& base, const RepeatConstants& constants);

}  // namespace planner
