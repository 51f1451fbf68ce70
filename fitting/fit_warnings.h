#pragma once

#include <string>
#include <vector>

#include "fitting/fit.h"

namespace fitting {

// What is weak about a fit, a line each: parameters at bounds, too few sizes, one ratio of tokens to parameters, several minima
// of nearly equal loss, directions that the rows do not tell, wide exponents, rows far off, draws in two groups.
std::vector<std::string> warnings_of(const FitReport& report, const Solver& solver, const FitOptions& options);

}  // namespace fitting
