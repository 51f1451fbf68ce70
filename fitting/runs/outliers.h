#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "fitting/solver/solver.h"

namespace fitting {

// Rows that a fit cannot be right about.
struct Outliers {
  std::vector<std::size_t> rows;      // the farthest first
  std::vector<double> residuals;      // of these rows: ln(measured / law)
  std::vector<double> parameters;     // of the fit without them, as the formula has them
};

// Rows more than ten typical residuals (1.4826 median |r|, a normal distribution's deviation) and 1 % off, where they are at most
// one in twenty: more of them say that the law is wrong, not the rows. Nothing where there are none.
std::optional<Outliers> outliers_of(const Solver& solver, const std::vector<double>& parameters);

}  // namespace fitting
