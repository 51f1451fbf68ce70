#pragma once

#include "fitting/fit.h"

namespace fitting {

// The parameters of a report's law and what follows from them, with the intervals of its draws.
void fill_estimates(FitReport& report, const FitOptions& options);

}  // namespace fitting
