#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fitting/fit.h"
#include "fitting/runs/runs.h"

namespace fitting {

struct Choice {
  Law law;
  std::vector<std::string> compared;  // a line for each law that could be fitted, the chosen one first, then by error
};

// The law that predicts best: each that the files have columns for is fitted to the runs of less compute (or those --holdout
// leaves) and held against the rest; of those about as good, the one of the fewest parameters. Throws InputError where no law can be fitted.
Choice choose(const std::vector<std::filesystem::path>& files, const RunOptions& options, const FitOptions& fit);

}  // namespace fitting
