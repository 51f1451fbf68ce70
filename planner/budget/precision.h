#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/budget/loss.h"

namespace planner {

// A factor with the range that measured rows span.
struct Factor {
  double value = 1.0, low = 1.0, high = 1.0;
};

// What a recipe's bits cost in loss: L_recipe(N, D) = L(N eff_N, D eff_D) on any base law.
struct RecipeLoss {
  std::string recipe;
  Factor parameters, tokens;  // eff_N, eff_D
  std::string flag;           // what to know before using it; "" = at or above the floor of low precision training
  std::string source;
  bool is_baseline() const { return parameters.low == 1.0 && tokens.low == 1.0; }
};

// What `fitting` knows of a recipe (data/precision.json). Throws InputError for one without factors, naming those that have
// them.
RecipeLoss recipe_loss(const std::string& recipe);

// Where in its range each factor stands.
enum class End : std::uint8_t { value, low, high };
// The loss of a law under a recipe.
LossModel::Function under(const LossModel::Function& loss, const RecipeLoss& recipe, End end = End::value);

// bf16-equivalent compute that brings back the loss that a recipe costs at N parameters and D tokens: low precision pays where
// it is faster by more than that. Nothing where a hundred times does not.
struct Payback {
  double parameters = 1.0;       // M_N = 1 / (eff_N eff_D): N and D free (same tokens, more parameters, where eff_D = 1)
  std::optional<double> both;    // M_R = k^2, L(k N eff_N, k D eff_D) = L(N, D): same tokens a parameter
  std::optional<double> tokens;  // M_D = m, L(N eff_N, m D eff_D) = L(N, D): same parameters, more tokens
};
Payback payback(const LossModel::Function& loss, const RecipeLoss& recipe, End end, double N, double D);

}  // namespace planner
