#pragma once

#include "fitting/fit.h"

namespace fitting {

// `fit` by fitting/solver/projection.h: E + A / N^alpha + B / D^beta by least squares of the losses themselves, with intervals by
// resampling. Throws InputError for another law, for options that it does not have (--fix, --tie, --profile, --compare), and for
// fewer rows than parameters.
FitReport fit_by_projection(const Law& law, const Rows& rows, const FitOptions& options);

}  // namespace fitting
