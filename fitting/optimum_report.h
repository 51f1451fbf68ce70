#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fitting/optimum.h"

namespace fitting {

// The best size and tokens of a law, and what other sizes cost.
struct OptimumAnswer {
  FittedLaw law;
  OptimumQuestion question;
  Optimum optimum;
  std::vector<Detour> detours;  // smaller and larger sizes with the same FLOPs
};

// Asks the law, and the same of sizes from a quarter to four times the best.
OptimumAnswer answer_optimum(const FittedLaw& law, const OptimumQuestion& question);

std::string optimum_table(const OptimumAnswer& answer);
std::string optimum_json(const OptimumAnswer& answer, const std::string& version);

}  // namespace fitting
