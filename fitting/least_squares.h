#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fitting {

// Residuals of a model at a point, and their derivatives: of residual i by parameter j at
// i * parameters + j, filled in where they were asked for.
struct Evaluation {
  std::vector<double> residuals;
  std::vector<double> jacobian;
};

enum class Derivatives : std::uint8_t { no, yes };

// A bounded, robust least-squares problem with a Gaussian prior on each parameter. It asks for the
// x that makes least
//   sum_i w_i rho(r_i(x) / noise) + sum_j ((x_j - prior_j) / prior_sigma_j)^2,
// rho(z) = z^2 up to huber / noise, beyond it grows linearly (Huber 1964).
struct LeastSquares {
  std::vector<double> start, low, high;    // of each parameter; low < high, start within
  std::vector<double> prior, prior_sigma;  // of each parameter
  std::vector<double> weights;             // of each residual, not negative
  double noise = 1.0, huber = 1.0;         // in units of the residuals
  double tolerance = 1e-7;                 // relative change of the sum at which it stops
  // Called from one thread, with the same x for residuals and derivatives.
  std::function<Evaluation(const std::vector<double>& x, Derivatives derivatives)> evaluate;
};

struct Fit {
  std::vector<double> x;
  // Roots of the diagonal of (J' W J / (s noise)^2 + P)^-1: W weights times Huber's, P the priors'
  // 1 / sigma^2, s^2 the weighted mean of (r / noise)^2 where that is above 1. Bounds are left out.
  std::vector<double> standard_errors;
  bool converged = false;
  std::string message;  // Ceres' word for why it stopped
  int iterations = 0;
};

// Minimises with Ceres (Levenberg-Marquardt), on one thread: the same input gives the same bits.
// Sizes that do not agree are a broken contract. Without parameters nothing is done.
Fit fit(const LeastSquares& problem);

}  // namespace fitting
