#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/logs/observations.h"
#include "fitting/fit.h"

namespace fitting {

// Size and tokens of least loss at a compute.
struct BestAt {
  double C = 0.0, N = 0.0, D = 0.0, L = 0.0;
  std::int64_t runs = 0;         // that it was found from
  std::optional<double> ln_N_sd; // of its bootstrap
};

// How the best size and the best number of tokens grow with compute: N* = N_coefficient C^a, D* = D_coefficient C^b, both found
// on their own, so that a + b tells whether C is 6 N D.
struct BestSizes {
  std::string law, source;             // chinchilla-isoflop; paper and approach
  std::vector<BestAt> points;          // from the least C
  std::vector<Estimate> parameters;    // a, b, N_coefficient, D_coefficient
  std::vector<Estimate> derived;       // tokens a parameter at the largest C
  double r2_log = 0.0;                 // of ln N*
  double objective = 0.0;              // the weighted sum of squares of ln N* about its line
  std::string objective_kind;
  std::optional<HeldOut> held_out;     // the largest budget, from the others
  std::vector<core::DroppedRow> refused;  // budgets, or computes, that gave no point, and why
  std::int64_t rows = 0, draws = 0, draws_failed = 0;
  std::vector<std::string> warnings;
};

// a, b and their coefficients of one set of points.
struct PowerLaws {
  double a = 0.0, b = 0.0, ln_N = 0.0, ln_D = 0.0;  // coefficients as logarithms
  double r2 = 0.0;
};

// Through logarithms of points; weights of each, or none. Requires two computes.
PowerLaws power_laws(const std::vector<BestAt>& points, const std::vector<double>& weights = {});

// Fills in estimates from the points' laws and those of the draws, and what is derived.
void set_estimates(BestSizes& sizes, const PowerLaws& best, const std::vector<PowerLaws>& draws, double confidence);

// What both approaches have to warn of: a + b, wide intervals, draws that failed.
void warn_of_exponents(BestSizes& sizes);

}  // namespace fitting
