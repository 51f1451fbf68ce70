#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fitting/solver/descent.h"
#include "fitting/law.h"
#include "fitting/solver/row_formula.h"

namespace fitting {

// Laws that are sums of terms, each a coefficient times powers of the variables:
//   ln L_i = ln sum_k exp(theta[coefficient_k] + sum_m theta[power_m] x_m,i + offset_k,i)
// Chinchilla's is one, with x = -ln N and -ln D. Values, gradients and Hessians of such laws have closed forms that work on
// eight rows at once.
struct LogSum {
  struct Factor {
    std::size_t parameter = 0;   // the power
    std::vector<double> column;  // of each row: the logarithm of what is raised to it, with its sign
  };
  struct Term {
    std::size_t coefficient = 0;  // of one term only
    std::vector<double> offset;   // of each row, a logarithm; empty: 0
    std::vector<Factor> factors;
  };
  std::vector<Term> terms;
  std::vector<double> target;  // ln of the measured value of each row
  std::size_t parameters = 0;
};

// The law in that form where it is one. Nothing where its formula is of another kind.
std::optional<LogSum> log_sum_of(const Law& law, const Rows& rows);

// S = sum_i weight_i H(target_i - ln L_i), H Huber's function. No weights: 1 each. Of `every` rows with weight only the first.
std::unique_ptr<Objective> log_sum_objective(const LogSum& model, const std::vector<double>& weights, std::size_t every = 1);

}  // namespace fitting
