#pragma once

#include <optional>
#include <vector>

#include "fitting/law.h"
#include "fitting/optimum/power_terms.h"
#include "fitting/optimum/slope.h"

namespace fitting {

// A law with everything fixed but N and D, over x = ln N and y = ln D.
class Landscape {
 public:
  // `variables` in the order of law.variables; those of N and D do not count. `flops_per_nd`: k of C = k N D where it is not
  // the law's own. Requires variables named N and D, and either law.training_flops or flops_per_nd.
  Landscape(const Law& law,
            const std::vector<double>& parameters,
            const std::vector<double>& variables,
            std::optional<double> flops_per_nd = {});

  void set_parameters(const std::vector<double>& parameters);
  // A recipe: the law sees N eff_N and D eff_D.
  void set_effective(double eff_N, double eff_D);

  // Loss; slopes along x and y. Not-a-number where the law is not defined.
  Slope loss(double x, double y) const;
  // ln of the training FLOPs of a token; its slope along x.
  Slope ln_flops_per_token(double x) const;

  // The law as two terms, where it is and FLOPs are k N D; of real N and D, a recipe included.
  struct Closed {
    TwoTerms terms;
    double k = 6.0;
  };
  std::optional<Closed> closed() const;

 private:
  Slope at(const Formula& formula, const std::vector<double>& symbols, double x, double y) const;

  Formula formula_, flops_;
  std::vector<std::size_t> of_parameter_;     // place of each parameter among the formula's symbols, past its end where unused
  std::vector<double> symbols_, of_flops_;    // values of the symbols of both
  double ln_eff_N_ = 0.0, ln_eff_D_ = 0.0;
  mutable std::vector<Slope> nodes_, seeds_;  // room
};

}  // namespace fitting
