#pragma once

#include <optional>
#include <string>
#include <vector>

namespace core {
class Document;
}

namespace fitting {

// A number with the ends that measured rows span: not a confidence interval.
struct Ranged {
  double value = 1.0, low = 1.0, high = 1.0;
  bool operator==(const Ranged&) const = default;
};

// A gap in percent of the loss; without a value where methods differ too much for one.
struct GapRange {
  std::optional<double> value;
  double low = 0.0, high = 0.0;
};
// From members low, high and, where there is one, value. Throws InputError where they are not in order.
GapRange gap_range_in(const core::Document& entry);

// What training with a recipe's bits costs: L_recipe(N, D) = L(N eff_N, D eff_D) on any base law, or `gap_percent` where its
// sources allow no more. data/precision.json for recipes of data/recipes, data/precision_methods.json for methods of papers.
struct RecipeEffect {
  std::string name;
  Ranged parameters, tokens;              // eff_N, eff_D
  std::optional<GapRange> gap_percent;    // in place of the two
  std::string flag;                       // what to know before using it; "" = at or above the floors of low precision
  std::string source;
};

// Throws InputError for a name that neither file has, with the nearest that one has.
const RecipeEffect& recipe_effect(const std::string& name);

// All of them, recipes first, in the order of the files.
const std::vector<RecipeEffect>& recipe_effects();

// Both at once: factors multiply (Kumar et al. found them independent; Chen et al. 0.906 of the sum).
RecipeEffect combined(const RecipeEffect& a, const RecipeEffect& b);

// eff_N that a measured gap implies, (1 + gap / (A N^-alpha))^(-1/alpha). Gap in nats at N parameters, A and alpha of the base law.
double effective_parameters(double gap, double N, double A, double alpha);

}  // namespace fitting
