#pragma once

#include <optional>
#include <string>

#include "fitting/precision/recipe_effects.h"
#include "fitting/precision/recipe_text.h"

namespace fitting {

// A gap that a law says, with the range of its inputs; percent of the law's own loss at 16 bits (or of the baseline's).
struct LawGap {
  std::string base;     // the constants that it was evaluated with
  GapRange nats, percent;
};

// The base law for factors at N parameters: Chinchilla's refitted constants from 4e8 on, Quartet's (30e6 to 200e6) below, where the
// first are 1.8 times too high.
std::string base_law_at(double N);

// L(N eff_N, D eff_D) of `recipe` less that of `baseline`, at the recipe's value and ends.
LawGap gap_by_factors(const std::string& base, double N, double D, const RecipeEffect& recipe, const RecipeEffect& baseline);

// Kumar et al.: integer types, weights and activations in so many bits. Range: the rms factor of 1.8 of published rows. Nothing
// where the law has no value there.
std::optional<LawGap> gap_by_kumar(double N, double D, double bits_weights, double bits_activations);

// Chen et al., quantisation-aware training, `set` of data/laws: chen-w4a4, chen-w4a16, chen-w16a4. Range 0.7 to 1.4 times.
LawGap gap_by_chen(const std::string& set, double N, double D, double group);

// The law of Sun et al. for floating-point formats (E2M1, E4M3), in percent. Nothing for others.
std::optional<double> percent_by_sun(double N, double D, const TensorFormat& format);

// Values along the sum that share a scale: a block's, or a channel's, which is taken for the width of a model of N parameters with
// 128 of width a layer, N = 12 width^3 / 128, to the nearest power of two. Nothing for a tensor's.
std::optional<double> group_of(const TensorFormat& format, double N);

// What each law says of a row of training in few bits, in percent, against 16 bits.
struct LawsSideBySide {
  std::optional<double> kumar, sun, chen, eff_64;  // eff_64: 0.64 of the parameters, on Chinchilla's refitted constants
};
LawsSideBySide laws_side_by_side(double N, double D, const RecipeText& recipe);

}  // namespace fitting
