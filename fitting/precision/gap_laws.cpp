#include "fitting/precision/gap_laws.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fitting/fitted_law.h"

namespace fitting {
namespace {

using Point = std::map<std::string, double>;

// One set of constants, read once.
struct Constants {
  explicit Constants(const std::string& name) : law(fitted_law(name)), function(law.law) {}
  double value(const Point& at) const { return function.value(law.parameters, variables_of(law.law, at)); }
  double binding(const std::string& name, const Point& at) const {
    for (const auto& [bound, value] : function.bindings(law.parameters, variables_of(law.law, at))) {
      if (bound == name) return value;
    }
    return std::nan("");
  }
  FittedLaw law;
  LawFunction function;
};

const Constants& constants(const std::string& name) {
  static std::map<std::string, Constants> read;
  const auto at = read.find(name);
  return at != read.end() ? at->second : read.emplace(name, Constants(name)).first->second;
}

GapRange scaled(const GapRange& gap, double factor) { return {gap.value ? std::optional(*gap.value * factor) : std::nullopt, gap.low * factor, gap.high * factor}; }

LawGap times(const std::string& base, double nats, double low, double high, double loss) {
  LawGap out{base, {nats, low * nats, high * nats}, {}};
  out.percent = scaled(out.nats, 100.0 / loss);
  return out;
}

// Exponent and mantissa bits.
std::optional<std::pair<double, double>> bits_of(const TensorFormat& format) {
  if (format.element == "fp4") return std::pair{2.0, 1.0};
  if (format.element == "fp8") return std::pair{4.0, 3.0};
  return std::nullopt;
}

}  // namespace

std::string base_law_at(double N) { return N >= 4e8 ? "effective-epoch" : "quartet-bf16"; }

LawGap gap_by_factors(const std::string& base, double N, double D, const RecipeEffect& recipe, const RecipeEffect& baseline) {
  const auto& law = constants(base);
  const auto loss = [&](double eff_N, double eff_D) { return law.value({{"N", N}, {"D", D}, {"eff_N", eff_N}, {"eff_D", eff_D}}); };
  const double whole = loss(baseline.parameters.value, baseline.tokens.value);
  LawGap out;
  out.base = base;
  out.nats = {loss(recipe.parameters.value, recipe.tokens.value) - whole, loss(recipe.parameters.high, recipe.tokens.high) - whole,
              loss(recipe.parameters.low, recipe.tokens.low) - whole};
  out.percent = scaled(out.nats, 100.0 / whole);
  return out;
}

std::optional<LawGap> gap_by_kumar(double N, double D, double bits_weights, double bits_activations) {
  const auto& law = constants("kumar-published");
  const double whole = law.value({{"N", N}, {"D", D}});
  const double gap = law.value({{"N", N}, {"D", D}, {"P_w", bits_weights}, {"P_a", bits_activations}}) - whole;
  if (!std::isfinite(gap)) return std::nullopt;
  return times("kumar-published", gap, 1.0 / 1.8, 1.8, whole);
}

LawGap gap_by_chen(const std::string& set, double N, double D, double group) {
  const auto& law = constants(set);
  const double delta = law.binding("delta", {{"N", N}, {"D", D}, {"G", group}});
  return times(set, delta, 0.7, 1.4, law.value({{"N", N}, {"D", D}, {"G", 1.0}}));
}

std::optional<double> percent_by_sun(double N, double D, const TensorFormat& format) {
  const auto bits = bits_of(format);
  if (!bits || format.sharing == Sharing::unstated || format.sharing == Sharing::tensor) return std::nullopt;
  const double block = format.sharing == Sharing::channel ? std::exp2(13.1567) : format.columns;
  const auto& law = constants("sun-published");
  const auto loss = [&](double shared) { return law.value({{"N", N}, {"D", D}, {"E", bits->first}, {"M", bits->second}, {"B", shared}}); };
  const double whole = loss(1.0);  // log2 of one value is 0: the law without its quantised term
  return 100.0 * (loss(block) - whole) / whole;
}

std::optional<double> group_of(const TensorFormat& format, double N) {
  if (format.sharing == Sharing::block) return format.columns;
  if (format.sharing == Sharing::channel) return std::exp2(std::round(std::log2(std::cbrt(N * 128.0 / 12.0))));
  return std::nullopt;
}

LawsSideBySide laws_side_by_side(double N, double D, const RecipeText& recipe) {
  LawsSideBySide out;
  const auto forward = recipe.forward();
  if (!forward || forward->is_high() || recipe.backward_only || recipe.late_percent) return out;
  const auto a = recipe.of_activations();
  if (const auto kumar = gap_by_kumar(N, D, recipe.of_weights()->bits, a->bits)) out.kumar = kumar->percent.value;
  const auto& scales = a->sharing != Sharing::unstated ? *a : *forward;
  out.sun = percent_by_sun(N, D, scales);
  if (forward->bits == 4.0) {
    if (const auto group = group_of(scales, N)) out.chen = gap_by_chen("chen-w4a4", N, D, *group).percent.value;
    RecipeEffect plain;
    plain.parameters = {0.64, 0.64, 0.64};
    out.eff_64 = gap_by_factors("effective-epoch", N, D, plain, RecipeEffect{}).percent.value;
  }
  return out;
}

}  // namespace fitting
