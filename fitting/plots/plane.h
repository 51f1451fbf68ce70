#pragma once

#include <optional>
#include <vector>

#include "fitting/fitted_law.h"
#include "fitting/solver/row_formula.h"

namespace fitting {

// Whether a law has a loss for each size N and compute C: variables N and D, and training FLOPs.
bool has_plane(const Law& law);

// A law over size and compute: D is what C buys at N, every other variable as the runs mostly have it. Requires has_plane.
class LawPlane {
 public:
  LawPlane(const FittedLaw& law, const Rows& rows);

  double tokens(double N, double C) const;
  // Not-a-number where the law is not defined. `parameters`: the law's own, or one of its draws.
  double loss(double N, double C, const std::vector<double>& parameters) const;
  double loss(double N, double C) const { return loss(N, C, law_.parameters); }
  // The size of least loss at C between two sizes, by halving after the golden ratio in ln N; nothing where it is at an end.
  std::optional<double> best_size(double C, double low, double high, const std::vector<double>& parameters) const;
  // The compute at which a size reaches a loss, between two computes; nothing where it does not.
  std::optional<double> compute_for(double N, double loss, double low, double high) const;
  // Other variables, "U = 1e+10, bits = 16"; empty where there are none.
  std::string held() const;

 private:
  std::vector<double> point(double N, double C) const;

  const FittedLaw& law_;
  LawFunction function_, flops_;
  std::vector<double> usual_;  // of each variable
  std::size_t n_ = 0, d_ = 0;  // places of N and D
};

}  // namespace fitting
