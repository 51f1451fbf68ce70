#pragma once

#include "fitting/optimum/optimum.h"

namespace fitting {

// Adds what the law itself warns of, what of the answer lies outside of the runs it was fitted on, and intervals too wide to use.
void warn(const FittedLaw& law, const OptimumQuestion& question, Optimum& answer);

}  // namespace fitting
