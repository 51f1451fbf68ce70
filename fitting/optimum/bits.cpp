#include "fitting/optimum/bits.h"

#include <cmath>

#include "core/error.h"
#include "fitting/optimum/landscape.h"
#include "fitting/optimum/sign_change.h"

namespace fitting {
namespace {

constexpr double least_bits = 0.5, most_bits = 32.0, usual_bits = 16.0;

Optimum at_bits(const FittedLaw& law, OptimumQuestion question, const std::vector<std::string>& names, double bits) {
  for (const auto& name : names) question.fixed[name] = bits;
  question.flops = *question.flops * usual_bits / bits;
  return optimum(law, question);
}

// What of a point two laws know: the variables of each.
Landscape landscape_at(const FittedLaw& law, const std::map<std::string, double>& at) {
  std::map<std::string, double> own = {{"D", 1.0}};
  for (const auto& variable : law.law.variables) {
    if (const auto found = at.find(variable.name); found != at.end()) own[variable.name] = found->second;
  }
  return {law.law, law.parameters, variables_of(law.law, own), 6.0};
}

}  // namespace

// The slope of the least loss along ln P, by differences of fourth order; an optimum is exact to its last digits.
BitsOptimum best_bits(const FittedLaw& law, const OptimumQuestion& question, const std::vector<std::string>& names) {
  CORE_ASSERT(question.flops && !names.empty());
  auto plain = law;
  plain.draws.clear();
  const auto loss = [&](double ln_bits) {
    const auto found = at_bits(plain, question, names, std::exp(ln_bits));
    return found.found() ? found.loss : std::nan("");
  };
  const auto slope = [&](double ln_bits) {
    constexpr double h = 2e-3;
    return 8.0 * (loss(ln_bits + h) - loss(ln_bits - h)) - (loss(ln_bits + 2.0 * h) - loss(ln_bits - 2.0 * h));
  };
  const double first = std::log(least_bits), last = std::log(most_bits);
  constexpr double step = 0.05;
  double best = std::isnan(loss(first)) ? last : first, best_loss = loss(best), before = first, slope_before = slope(first);
  bool inside = false;
  for (double at = first + step; at <= last; at += step) {
    const double slope_at = slope(at);
    if (!(slope_before >= 0.0) && slope_at >= 0.0) {
      const double candidate = sign_change(before, at, slope);
      if (!(loss(candidate) >= best_loss)) {
        best = candidate;
        best_loss = loss(candidate);
        inside = true;
      }
    }
    before = at;
    slope_before = slope_at;
  }
  return {std::exp(best), at_bits(law, question, names, std::exp(best)), inside};
}

std::optional<double> critical_tokens(const FittedLaw& law, const FittedLaw& rise, const std::map<std::string, double>& at) {
  const auto trained = landscape_at(law, at), quantised = landscape_at(rise, at);
  const double x = std::log(at.at("N"));
  const auto slope = [&](double y) { return trained.loss(x, y).along[1] + quantised.loss(x, y).along[1]; };
  double before = 0.0;
  for (double y = 0.5; y < 92.0; y += 0.5) {
    if (slope(before) < 0.0 && slope(y) >= 0.0) return std::exp(sign_change(before, y, slope));
    before = y;
  }
  return std::nullopt;
}

}  // namespace fitting
