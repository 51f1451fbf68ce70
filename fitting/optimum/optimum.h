#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fitting/fitted_law.h"

namespace fitting {

// What is asked of a law of N and D. Either `flops` or `loss` is given.
struct OptimumQuestion {
  std::optional<double> flops;  // to spend: on training, and on inference where tokens of it are given
  std::optional<double> loss;   // to reach, with the fewest FLOPs
  std::map<std::string, double> fixed;  // the law's other variables: G, S, r, P_w, ...

  std::optional<double> flops_per_nd;   // k of C = k N D, in place of the law's own
  std::optional<double> unique_tokens;  // U, of a law that has it
  std::optional<double> parameters;     // the size is given: what are its tokens?
  std::optional<double> max_parameters; // the size is bounded: by memory, or by serving

  // Tokens served over the life of the model, each a third of the FLOPs of a training token (2 N of 6 N); the price of one of
  // their FLOPs over one of training, from rates and utilisation. Sardana et al. 2024, arXiv 2401.00448, Eq. 3 and 6.
  double inference_tokens = 0.0;
  double inference_price = 1.0;

  // A recipe: the law sees N eff_N, D eff_D and U eff_D.
  double eff_N = 1.0, eff_D = 1.0;

  double confidence = 0.95;  // share of the law's draws in an interval
};

// The best size and its tokens.
struct Optimum {
  std::string why_not;  // why there is none: then nothing below is set

  double N = 0.0, D = 0.0, loss = 0.0;
  double flops = 0.0;        // of training
  double total_flops = 0.0;  // with inference at its price
  // d ln N / d ln total_flops: nothing where the size is given, or at its bound.
  std::optional<double> exponent;
  // The central share of the law's draws, where it has any.
  std::optional<Interval> N_range, D_range, loss_range, flops_range, exponent_range;
  bool closed_form = false;
  std::vector<std::string> warnings;

  bool found() const { return why_not.empty(); }
};

// N = G (C / k)^a, D = (C / k)^b / G for two falling terms (Hoffmann et al. 2022, Eq. 4), else by search; with what whoever reads
// it should know: extrapolation, several minima, values that were taken because nobody gave them. Throws InputError for a
// question that the law does not answer: a variable missing or unknown, no FLOPs, a number that is not positive.
Optimum optimum(const FittedLaw& law, const OptimumQuestion& question);

// The tokens for which a size is compute-optimal, their loss and FLOPs; the budget of the question is not used.
Optimum optimum_of_size(const FittedLaw& law, OptimumQuestion question, double N);

// What another size costs.
struct Detour {
  double N = 0.0;
  Optimum at;                // that size, with the same FLOPs or loss as asked
  double loss_above = 0.0;   // over the optimum's loss: with the same FLOPs
  std::optional<double> flops_overhead;  // FLOPs to the loss of the optimum, over the optimum's, less one. Nothing: never reached
};

// A size held against the optimum of a question with FLOPs, without intervals. Requires an optimum.
Detour detour(const FittedLaw& law, OptimumQuestion question, double N);

}  // namespace fitting
