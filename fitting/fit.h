#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fitting/solver/bootstrap.h"
#include "fitting/fitted_law.h"
#include "fitting/runs/outliers.h"
#include "fitting/solver/solver.h"

namespace fitting {

struct FitOptions {
  std::optional<double> huber;                  // threshold on logarithms of losses; else the law's own
  std::int64_t starts = 4500;                   // at most
  std::map<std::string, double> fixed;          // parameters held at a value
  std::map<std::string, std::string> tied;      // parameters that equal another: beta -> alpha
  std::int64_t bootstrap = 0;                   // draws; 0: no intervals
  std::int64_t bootstrap_starts = 0;            // of each draw, besides the fit's minimum
  Resample resample = Resample::cases;
  std::uint64_t seed = 1;
  double confidence = 0.95;
  std::vector<bool> held_out;                   // [row]: not fitted to, but predicted
  std::vector<std::string> profile;             // parameters to profile
  std::vector<std::string> row_names;           // [row] for warnings of single rows; numbers where there are none
  std::vector<std::pair<std::string, std::vector<double>>> compare;  // other constants of the law, by name: S at them is reported
};

struct Estimate {
  std::string name;
  double value = 0.0;
  std::optional<Interval> interval;  // of the bootstrap
  bool fixed = false;
};

// S with all other parameters fitted again, along one of them (profile likelihood).
struct Profile {
  std::string parameter;
  std::vector<double> values, objectives;
};

struct HeldOut {
  std::int64_t rows = 0;
  double median_abs_error = 0.0, bias = 0.0;  // relative: predicted / measured - 1
  std::string which;                          // of the rows: "C > 3e21"
};

struct FitReport {
  FittedLaw law;                     // with the draws of the bootstrap
  std::vector<Estimate> parameters;  // in the law's order, fixed ones too
  std::vector<Estimate> derived;     // of laws of N and D: a = d ln N* / d ln C, tokens a parameter
  double objective = 0.0;
  double r2_log = 0.0, huber = 0.0;
  std::vector<std::pair<std::string, double>> compared;  // S at other constants
  std::int64_t rows = 0, starts = 0, starts_at_best = 0;
  bool converged = false, batched = false;
  bool projected = false;            // by fitting/solver/projection.h: the objective is the sum of squares of measured - law
  std::vector<Basin> minima;         // the best and others within 2 % of its objective
  std::optional<HeldOut> held_out;
  std::vector<Profile> profiles;
  std::optional<Outliers> outliers;  // rows among those given, and all parameters
  std::int64_t draws = 0, draws_failed = 0, draws_at_bound = 0;
  std::vector<std::string> warnings;
  std::vector<double> predicted;     // of each row, held-out ones too
};

// Fits, polishes, resamples, and says what is weak about the answer. Throws InputError for fewer rows than parameters.
FitReport fit(const Law& law, const Rows& rows, const FitOptions& options);

}  // namespace fitting
