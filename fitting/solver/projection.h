#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fitting {

// Constants of L = E + A / N^alpha + B / D^beta.
struct Projected {
  double E = 0.0, A = 0.0, B = 0.0, alpha = 0.0, beta = 0.0;
  double squares = 0.0;    // the weighted sum of squares of measured - law
  bool converged = false;  // the search of (alpha, beta) closed in, not at an end of its range
};

inline constexpr double least_exponent = 0.02, largest_exponent = 2.0;

// Least squares by variable projection (Golub & Pereyra 1973): for given alpha and beta the law is linear in E, A, B >= 0, which
// are solved for; a grid and then simplices (Nelder & Mead 1965) search alpha and beta alone. What makes the five-parameter
// problem stiff, that E, A and alpha nearly stand for each other, does not arise. Residuals are of the loss itself, not of its
// logarithm, and not robust. `near`: start there, without the grid. Requires more rows than three, with positive N and D.
Projected project(const std::vector<double>& N, const std::vector<double>& D, const std::vector<double>& L, const std::vector<double>& weights = {},
                  const std::optional<Projected>& near = {});

}  // namespace fitting
