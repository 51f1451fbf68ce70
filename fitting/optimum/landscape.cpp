#include "fitting/optimum/landscape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace fitting {
namespace {

std::size_t place_of(const std::vector<std::string>& symbols, const std::string& name) {
  return static_cast<std::size_t>(std::find(symbols.begin(), symbols.end(), name) - symbols.begin());
}

void set_variables(const Law& law, const std::vector<double>& variables, const Formula& formula, std::vector<double>& values) {
  values.resize(formula.symbols().size());
  for (std::size_t i = 0; i < law.variables.size(); ++i) {
    const auto place = place_of(formula.symbols(), law.variables[i].name);
    if (place < values.size()) values[place] = variables[i];
  }
}

}  // namespace

Landscape::Landscape(const Law& law,
                     const std::vector<double>& parameters,
                     const std::vector<double>& variables,
                     std::optional<double> flops_per_nd)
    : formula_(Formula::parse(law.formula, law.name)),
      flops_(Formula::parse(flops_per_nd ? fmt::format("{} * N * D", *flops_per_nd) : law.training_flops, law.name)) {
  CORE_ASSERT(variables.size() == law.variables.size());
  set_variables(law, variables, formula_, symbols_);
  set_variables(law, variables, flops_, of_flops_);
  for (const auto& parameter : law.parameters) of_parameter_.push_back(place_of(formula_.symbols(), parameter.name));
  set_parameters(parameters);
}

void Landscape::set_parameters(const std::vector<double>& parameters) {
  CORE_ASSERT(parameters.size() == of_parameter_.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (of_parameter_[i] < symbols_.size()) symbols_[of_parameter_[i]] = parameters[i];
  }
}

void Landscape::set_effective(double eff_N, double eff_D) {
  ln_eff_N_ = std::log(eff_N);
  ln_eff_D_ = std::log(eff_D);
}

// d N / d x = N.
Slope Landscape::at(const Formula& formula, const std::vector<double>& symbols, double x, double y) const {
  seeds_.resize(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const auto& name = formula.symbols()[i];
    if (name == "N") seeds_[i] = {std::exp(x), {std::exp(x), 0.0}};
    else if (name == "D") seeds_[i] = {std::exp(y), {0.0, std::exp(y)}};
    else seeds_[i] = {symbols[i], {}};
  }
  return slope_of(formula, seeds_, nodes_);
}

Slope Landscape::loss(double x, double y) const { return at(formula_, symbols_, x + ln_eff_N_, y + ln_eff_D_); }

Slope Landscape::ln_flops_per_token(double x) const {
  const auto flops = at(flops_, of_flops_, x, 0.0);
  return {std::log(flops.value), {flops.along[0] / flops.value, 0.0}};
}

std::optional<Landscape::Closed> Landscape::closed() const {
  auto terms = two_terms(formula_, symbols_);
  const auto flops = power_term(flops_, of_flops_);
  if (!terms || !flops || flops->n != 1.0 || flops->d != 1.0) return std::nullopt;
  terms->A *= std::exp(-terms->alpha * ln_eff_N_);
  terms->B *= std::exp(-terms->beta * ln_eff_D_);
  return Closed{*terms, flops->c};
}

}  // namespace fitting
