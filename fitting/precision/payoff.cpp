#include "fitting/precision/payoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace fitting {
namespace {

double power_term(double scale, double x, double exponent) { return scale * std::pow(x, -exponent); }

// k >= 1 with A (k N eff_N)^-alpha + B (k D eff_D)^-beta = A N^-alpha + B D^-beta, by bisection of ln k: the left side falls with k,
// is above the right one at 1 and below it at the larger of 1 / eff_N and 1 / eff_D.
double same_ratio_factor(const LossTerms& law, double N, double D, double eff_N, double eff_D) {
  const double target = power_term(law.A, N, law.alpha) + power_term(law.B, D, law.beta);
  double low = 0.0, high = -std::log(std::min(eff_N, eff_D));
  for (int i = 0; i < 80; ++i) {
    const double middle = 0.5 * (low + high), k = std::exp(middle);
    const double loss = power_term(law.A, k * N * eff_N, law.alpha) + power_term(law.B, k * D * eff_D, law.beta);
    (loss > target ? low : high) = middle;
  }
  return std::exp(0.5 * (low + high));
}

}  // namespace

LossTerms loss_terms(const FittedLaw& law) {
  static const std::array<std::string_view, 5> names = {"A", "B", "E", "alpha", "beta"};
  std::array<double, 5> values{};
  std::size_t found = 0;
  for (std::size_t j = 0; j < law.law.parameters.size(); ++j) {
    const auto at = std::find(names.begin(), names.end(), law.law.parameters[j].name);
    if (at == names.end()) continue;
    values[static_cast<std::size_t>(at - names.begin())] = law.parameters[j];
    ++found;
  }
  if (found != names.size() || law.law.parameters.size() != names.size() || (law.law.name != "chinchilla" && law.law.name != "effective")) {
    throw core::InputError(fmt::format("{}: found the law {}, expected one of the form E + A / N^alpha + B / D^beta", law.name, law.law.name));
  }
  return {values[0], values[3], values[1], values[4]};
}

Payback payback(const LossTerms& law, double N, double D, double eff_N, double eff_D) {
  CORE_ASSERT(eff_N > 0.0 && eff_N <= 1.0 && eff_D > 0.0 && eff_D <= 1.0);
  Payback out;
  out.parameters = 1.0 / (eff_N * eff_D);
  const double k = same_ratio_factor(law, N, D, eff_N, eff_D);
  out.both = k * k;
  // B (m D eff_D)^-beta = B D^-beta - A N^-alpha (eff_N^-alpha - 1)
  const double left = power_term(law.B, D, law.beta) - power_term(law.A, N, law.alpha) * (std::pow(eff_N, -law.alpha) - 1.0);
  const double factor = left > 0.0 ? std::pow(law.B / left, 1.0 / law.beta) / (D * eff_D) : most_tokens + 1.0;
  if (factor <= most_tokens) out.tokens = factor;
  return out;
}

double tokens_at_measured_price(double gap_percent) { return std::pow(1.36, gap_percent); }

std::string_view name_of(Worth worth) {
  if (worth == Worth::pays) return "pays";
  return worth == Worth::undecided ? "undecided" : "does not pay";
}

WorthOfSpeed worth_of_speed(double speed, const RecipeEffect& effect) {
  CORE_ASSERT(!effect.gap_percent);
  const auto factor = [](double eff_N, double eff_D) { return 1.0 / (eff_N * eff_D); };
  WorthOfSpeed out;
  out.factor = {factor(effect.parameters.value, effect.tokens.value),
                factor(effect.parameters.high, effect.tokens.high),
                factor(effect.parameters.low, effect.tokens.low)};
  out.gain = speed / out.factor.value;
  if (speed > out.factor.high) out.worth = Worth::pays;
  else if (speed <= out.factor.low) out.worth = Worth::does_not_pay;
  return out;
}

double speed_of_linears(double share, double linear_speed) { return 1.0 / ((1.0 - share) + share / linear_speed); }

double speed_with_late_switch(double speed, double share) { return 1.0 / ((1.0 - share) / speed + share); }

double equal_parameters(const LossTerms& law, double N, double gap) { return N * effective_parameters(gap, N, law.A, law.alpha); }

}  // namespace fitting
