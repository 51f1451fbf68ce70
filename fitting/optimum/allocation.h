#pragma once

#include <optional>

#include "fitting/optimum/landscape.h"

namespace fitting {

// What is bought besides training, and what bounds the size.
struct Spending {
  // Tokens whose training FLOPs are those of all inference, at its price: a forward pass is a third of training.
  double inference = 0.0;
  std::optional<double> N;      // the size is given
  std::optional<double> max_N;  // or bounded
};

// A size and its tokens.
struct Allocation {
  double x = 0.0, y = 0.0;  // ln N, ln D
  double ln_flops = 0.0;    // of training and inference
  bool closed_form = false;
  bool inside = true;       // not at a bound, nor at the end of what was searched
  int minima = 1;           // that were found
};

// Least loss for FLOPs: closed form where there is one, else the places where its slope along the budget changes its sign, over N
// from 1 to 1e30, both sides of a kink included, to the last digits. `near`: look around this ln N alone, a neighbour's answer.
// Nothing where the law has no loss.
std::optional<Allocation> best_for_flops(const Landscape& law, const Spending& spending, double flops, std::optional<double> near = {});

// Fewest FLOPs for a loss, likewise. Nothing where it cannot be reached.
std::optional<Allocation> cheapest_for_loss(const Landscape& law, const Spending& spending, double loss, std::optional<double> near = {});

// ln D at which size e^x first reaches a loss. Nothing where it never does.
std::optional<double> tokens_for_loss(const Landscape& law, double x, double loss);

// ln D for which size e^x is compute-optimal. Nothing where it is for none.
std::optional<double> tokens_of_optimal_size(const Landscape& law, double x);

}  // namespace fitting
