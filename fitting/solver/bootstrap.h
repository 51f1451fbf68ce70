#pragma once

#include <cstdint>
#include <vector>

#include "fitting/fitted_law.h"
#include "fitting/solver/solver.h"

namespace fitting {

// What is drawn anew: rows with replacement, or residuals put on the fitted values.
enum class Resample : std::uint8_t { cases, residuals };

struct BootstrapOptions {
  std::int64_t draws = 4000;
  std::uint64_t seed = 1;
  Resample resample = Resample::cases;
  // From which each draw is fitted: of the fit's minimum alone where there are none, else of these too (search scale).
  std::vector<std::vector<double>> starts;
};

struct Bootstrap {
  std::vector<std::vector<double>> draws;  // parameters as the formula has them
  std::int64_t failed = 0;                 // draws that gave no finite minimum
  std::int64_t at_bound = 0;               // draws with a parameter at one of its bounds
};

// Refits a law to resampled rows (Efron 1979). Rows drawn k times weigh k: the same objective without copies. The same for any
// number of threads.
Bootstrap bootstrap(const Solver& solver, const Minimum& minimum, const BootstrapOptions& options);

// The central share `confidence` of values, by percentiles between neighbours. Requires values.
Interval percentile_interval(std::vector<double> values, double confidence);

// Whether a parameter (as the formula has it) stands at a bound of the search.
bool at_bound(const Parameter& parameter, double value);

}  // namespace fitting
