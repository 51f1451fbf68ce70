#include "planner/budget/precision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"
#include "fitting/precision/recipe_effects.h"

namespace planner {

namespace {

// A loss that takes more to bring back counts as lost.
constexpr double most_factor = 100.0;

Factor factor_of(const fitting::Ranged& range) { return {range.value, range.low, range.high}; }

double at(const Factor& f, End end) { return end == End::value ? f.value : end == End::low ? f.low : f.high; }

// The least factor in 1 .. most that brings the loss down to a target; nothing where none does.
std::optional<double> least_factor(const std::function<double(double)>& loss_with, double target, double most) {
  if (loss_with(1.0) <= target) return 1.0;
  if (loss_with(most) > target) return std::nullopt;
  double low = 0.0, high = std::log(most);
  for (int i = 0; i < 80; ++i) {
    const double middle = 0.5 * (low + high);
    (loss_with(std::exp(middle)) <= target ? high : low) = middle;
  }
  return std::exp(high);
}

}  // namespace

RecipeLoss recipe_loss(const std::string& recipe) {
  const auto trained = core::data_names("recipes");
  std::vector<std::string> known;
  for (const auto& effect : fitting::recipe_effects()) {
    if (effect.gap_percent || std::find(trained.begin(), trained.end(), effect.name) == trained.end()) continue;
    if (effect.name == recipe) {
      return {recipe, factor_of(effect.parameters), factor_of(effect.tokens), effect.flag, effect.source};
    }
    known.push_back(effect.name);
  }
  throw core::InputError(fmt::format("--recipes: found {}, whose cost in loss nobody has measured; expected one of {}",
                                     core::printable(recipe), fmt::join(known, ", ")));
}

LossModel::Function under(const LossModel::Function& loss, const RecipeLoss& recipe, End end) {
  if (recipe.is_baseline()) return loss;
  const double n = at(recipe.parameters, end), d = at(recipe.tokens, end);
  return [loss, n, d](double N, double D, double U) { return loss(N * n, D * d, U * d); };
}

Payback payback(const LossModel::Function& loss, const RecipeLoss& recipe, End end, double N, double D) {
  const auto low = under(loss, recipe, end);
  const double target = loss(N, D, D);
  Payback out;
  out.parameters = 1.0 / (at(recipe.parameters, end) * at(recipe.tokens, end));
  const auto k = least_factor([&](double x) { return low(x * N, x * D, x * D); }, target, most_factor);
  if (k) out.both = *k * *k;
  out.tokens = least_factor([&](double m) { return low(N, m * D, m * D); }, target, most_factor);
  return out;
}

}  // namespace planner
