#include "fitting/optimum/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fitting/optimum/sign_change.h"

namespace fitting {
namespace {

bool has(const Law& law, const std::string& variable) {
  return std::any_of(law.variables.begin(), law.variables.end(), [&](const auto& v) { return v.name == variable; });
}

double ln_beta(double u, double v) { return std::lgamma(u) + std::lgamma(v) - std::lgamma(u + v); }

}  // namespace

std::vector<Choice> choices(const FittedLaw& law,
                            const OptimumQuestion& question,
                            const std::string& variable,
                            const std::vector<double>& values,
                            const std::function<std::optional<double>(double)>& largest) {
  std::vector<Choice> made;
  for (const double value : values) {
    auto one = question;
    one.fixed[variable] = value;
    const auto limit = largest ? largest(value) : std::nullopt;
    if (limit) one.max_parameters = std::min(*limit, one.max_parameters.value_or(*limit));
    made.push_back({value, optimum(law, one)});
  }
  return made;
}

const Choice* best_choice(const std::vector<Choice>& made, const OptimumQuestion& question) {
  const auto worth = [&](const Choice& choice) { return question.loss ? choice.at.total_flops : choice.at.loss; };
  const Choice* best = nullptr;
  for (const auto& choice : made) {
    if (choice.at.found() && (best == nullptr || worth(choice) < worth(*best))) best = &choice;
  }
  return best;
}

double largest_active(double total_limit, double experts, double expert_share, double experts_per_token) {
  return total_limit / (1.0 + (experts - experts_per_token) * expert_share);
}

std::vector<Choice> sample_choices(const FittedLaw& law,
                                   OptimumQuestion question,
                                   double tokens_a_sample,
                                   double queries,
                                   const std::vector<double>& samples) {
  std::vector<Choice> made;
  for (const double k : samples) {
    question.inference_tokens = tokens_a_sample * k * queries;
    if (has(law.law, "k")) question.fixed["k"] = k;
    made.push_back({k, optimum(law, question)});
  }
  return made;
}

double pass_at_k(double u, double v, double k) { return -std::expm1(ln_beta(u, v + k) - ln_beta(u, v)); }

// C(n - c, k) / C(n, k) = prod over i from n - c + 1 to n of (1 - k / i).
double pass_at_k_of_samples(int n, int c, int k) {
  CORE_ASSERT(c >= 0 && c <= n && k >= 1 && k <= n);
  double none = 1.0;
  for (int i = n - c + 1; i <= n; ++i) none *= std::max(0.0, 1.0 - static_cast<double>(k) / i);
  return 1.0 - none;
}

std::optional<double> compute_multiplier(const FittedLaw& from, const FittedLaw& to, double C) {
  const auto loss = [](const FittedLaw& law, double flops) {
    return LawFunction(law.law).value(law.parameters, variables_of(law.law, {{"C", flops}}));
  };
  const double target = loss(to, C), last = std::log(1e40);
  const auto reached = [&](double ln_flops) { return target - loss(from, std::exp(ln_flops)); };
  if (!(reached(0.0) < 0.0) || !(reached(last) >= 0.0)) return std::nullopt;
  return std::exp(sign_change(0.0, last, reached)) / C;
}

FittedLaw with_repetition(const FittedLaw& base) {
  if (base.law.formula != law_of("chinchilla").formula || base.law.parameters.size() != 5) {
    throw core::InputError(
        fmt::format("{}: found {}, expected the form of chinchilla to add repeated data to", base.name, base.law.formula));
  }
  auto repeated = fitted_law("data-constrained-muennighoff");
  const std::vector<double> decay = {repeated.parameters[5], repeated.parameters[6]};
  CORE_ASSERT(repeated.law.parameters[5].name == "R_D_star" && repeated.law.parameters[6].name == "R_N_star");
  const auto own = fitted_law("chinchilla-muennighoff").warnings;  // of the base that is replaced
  const auto extended = [&](std::vector<double> parameters) {
    parameters.insert(parameters.end(), decay.begin(), decay.end());
    return parameters;
  };
  repeated.name = base.name + " with repeated data";
  repeated.source = fmt::format("{}; decay of repeated tokens: {}", base.source, repeated.source);
  repeated.parameters = extended(base.parameters);
  for (const auto& draw : base.draws) repeated.draws.push_back(extended(draw));
  repeated.range = base.range;
  repeated.counts = base.counts;
  std::erase_if(repeated.warnings, [&](const auto& warning) { return std::find(own.begin(), own.end(), warning) != own.end(); });
  if (!base.draws.empty()) repeated.warnings.push_back("intervals are those of the base: R_D_star and R_N_star are held");
  repeated.warnings.insert(repeated.warnings.end(), base.warnings.begin(), base.warnings.end());
  return repeated;
}

}  // namespace fitting
