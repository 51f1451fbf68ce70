#include "fitting/optimum/optimum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "fitting/optimum/allocation.h"
#include "fitting/solver/bootstrap.h"
#include "fitting/optimum/optimum_warnings.h"

namespace fitting {
namespace {

void require_positive(const char* flag, std::optional<double> value) {
  if (value && !(*value > 0.0)) throw core::InputError(fmt::format("{}: found {}, expected a number above 0", flag, *value));
}

void check(const FittedLaw& fitted, const OptimumQuestion& question) {
  const auto& law = fitted.law;
  const auto has = [&](const char* name) {
    return std::any_of(law.variables.begin(), law.variables.end(), [&](const auto& variable) { return variable.name == name; });
  };
  if (!has("N") || !has("D")) {
    throw core::InputError(fmt::format("{}: found a law without N or D, expected one of both, such as chinchilla-epoch", fitted.name));
  }
  if (law.training_flops.empty() && !question.flops_per_nd) {
    throw core::InputError(fmt::format("{}: found no training FLOPs in the law, expected --k K for C = K N D", fitted.name));
  }
  if (question.unique_tokens && !has("U")) {
    throw core::InputError(
        fmt::format("{}: found --unique-tokens, expected a law of repeated data, such as data-constrained-muennighoff", fitted.name));
  }
  if (question.fixed.count("N") + question.fixed.count("D") != 0) {
    throw core::InputError(fmt::format("{}: found --D among what is fixed, expected it to be sought", fitted.name));
  }
  if (question.flops && question.loss) throw core::InputError("--flops, --loss: found both, expected one");
  if (!question.flops && !question.loss) throw core::InputError("--flops, --loss: found neither, expected one");
  require_positive("--flops", question.flops);
  require_positive("--loss", question.loss);
  require_positive("--k", question.flops_per_nd);
  require_positive("--unique-tokens", question.unique_tokens);
  require_positive("--N", question.parameters);
  require_positive("--max-parameters", question.max_parameters);
  require_positive("--inference-price", question.inference_price);
  require_positive("--eff-N", question.eff_N);
  require_positive("--eff-D", question.eff_D);
  if (!(question.inference_tokens >= 0.0)) {
    throw core::InputError(fmt::format("--inference-tokens: found {}, expected 0 or more", question.inference_tokens));
  }
}

Landscape landscape_of(const FittedLaw& fitted, const OptimumQuestion& question) {
  auto values = question.fixed;
  values["N"] = values["D"] = 1.0;  // left open
  for (const auto& variable : fitted.law.variables) {
    if (variable.name != "U") continue;
    if (question.unique_tokens) values["U"] = *question.unique_tokens;
    else if (values.count("U") == 0) values["U"] = std::numeric_limits<double>::infinity();
    values["U"] *= question.eff_D;
  }
  Landscape land(fitted.law, fitted.parameters, variables_of(fitted.law, values), question.flops_per_nd);
  land.set_effective(question.eff_N, question.eff_D);
  return land;
}

Spending spending_of(const OptimumQuestion& question) {
  return {question.inference_price * question.inference_tokens / 3.0, question.parameters, question.max_parameters};
}

std::optional<Allocation> solve(const Landscape& land, const OptimumQuestion& question, std::optional<double> near = {}) {
  const auto spending = spending_of(question);
  if (question.flops) return best_for_flops(land, spending, *question.flops, near);
  return cheapest_for_loss(land, spending, *question.loss, near);
}

// By a hundredth of the budget to both sides; of an answer to a loss, the budget is what it costs.
std::optional<double> exponent_of(const Landscape& land, const OptimumQuestion& question, const Allocation& best) {
  constexpr double h = 0.01;
  if (question.parameters || !best.inside) return std::nullopt;
  const auto spending = spending_of(question);
  const auto more = best_for_flops(land, spending, std::exp(best.ln_flops + h), best.x);
  const auto less = best_for_flops(land, spending, std::exp(best.ln_flops - h), best.x);
  if (!more || !less) return std::nullopt;
  return (more->x - less->x) / (2.0 * h);
}

void add_ranges(const FittedLaw& fitted, const OptimumQuestion& question, const Allocation& best, Landscape land, Optimum& answer) {
  std::vector<double> N, D, loss, flops, exponents;
  for (const auto& draw : fitted.draws) {
    land.set_parameters(draw);
    const auto drawn = solve(land, question, best.x);
    if (!drawn) continue;
    N.push_back(std::exp(drawn->x));
    D.push_back(std::exp(drawn->y));
    loss.push_back(land.loss(drawn->x, drawn->y).value);
    flops.push_back(std::exp(drawn->y + land.ln_flops_per_token(drawn->x).value));
    if (const auto exponent = exponent_of(land, question, *drawn)) exponents.push_back(*exponent);
  }
  if (N.size() < fitted.draws.size()) {
    answer.warnings.push_back(fmt::format("{} of {} draws of {} have no answer: intervals are those of the others",
                                          fitted.draws.size() - N.size(), fitted.draws.size(), fitted.name));
  }
  if (N.empty()) return;
  const auto range = [&](std::vector<double>& values) { return percentile_interval(std::move(values), question.confidence); };
  answer.N_range = range(N);
  answer.D_range = range(D);
  answer.loss_range = range(loss);
  answer.flops_range = range(flops);
  if (exponents.size() > 1) answer.exponent_range = range(exponents);
}

void add_search_warnings(const OptimumQuestion& question, const Allocation& best, Optimum& answer) {
  if (best.minima > 1) {
    answer.warnings.push_back(fmt::format("{} sizes are best among their neighbours: the best of all is given", best.minima));
  }
  if (best.inside || question.parameters) return;
  if (question.max_parameters && answer.N >= 0.999 * *question.max_parameters) {
    answer.warnings.push_back("the best size lies above the largest that is allowed");
  } else {
    answer.warnings.push_back("no size is best: the answer lies at the end of what was searched");
  }
}

std::string no_answer(const FittedLaw& law, const OptimumQuestion& question) {
  if (question.loss) {
    return fmt::format("{} does not reach a loss of {}{}", law.name, *question.loss, question.parameters ? " at this size" : "");
  }
  if (question.inference_tokens > 0.0) {
    return fmt::format("{:.3g} FLOPs leave none for training, or {} has no loss there", *question.flops, law.name);
  }
  return fmt::format("{} has no loss anywhere on {:.3g} FLOPs", law.name, *question.flops);
}

}  // namespace

Optimum optimum(const FittedLaw& law, const OptimumQuestion& question) {
  check(law, question);
  const auto land = landscape_of(law, question);
  Optimum answer;
  const auto best = solve(land, question);
  if (!best) {
    answer.why_not = no_answer(law, question);
    warn(law, question, answer);
    return answer;
  }
  answer.N = question.parameters.value_or(std::exp(best->x));
  answer.D = std::exp(best->y);
  answer.loss = land.loss(best->x, best->y).value;
  answer.flops = std::exp(best->y + land.ln_flops_per_token(best->x).value);
  answer.total_flops = std::exp(best->ln_flops);
  answer.closed_form = best->closed_form;
  answer.exponent = exponent_of(land, question, *best);
  add_search_warnings(question, *best, answer);
  add_ranges(law, question, *best, land, answer);
  warn(law, question, answer);
  return answer;
}

Optimum optimum_of_size(const FittedLaw& law, OptimumQuestion question, double N) {
  require_positive("--N", N);
  question.loss.reset();
  question.flops = 1.0;
  check(law, question);
  const auto land = landscape_of(law, question);
  const auto y = tokens_of_optimal_size(land, std::log(N));
  if (!y) {
    Optimum answer;
    answer.why_not = fmt::format("{} parameters are best for no number of tokens under {}", N, law.name);
    return answer;
  }
  question.inference_tokens = 0.0;
  question.flops = std::exp(*y + land.ln_flops_per_token(std::log(N)).value);
  auto answer = optimum(law, question);
  if (answer.found() && std::fabs(answer.N / N - 1.0) < 1e-6) return answer;
  question.parameters = N;  // best among its neighbours only
  return optimum(law, question);
}

Detour detour(const FittedLaw& fitted, OptimumQuestion question, double N) {
  CORE_ASSERT(question.flops);
  auto law = fitted;
  law.draws.clear();
  const auto best = optimum(law, question);
  CORE_ASSERT(best.found());
  Detour other;
  other.N = N;
  question.parameters = N;
  other.at = optimum(law, question);
  if (other.at.found()) other.loss_above = other.at.loss - best.loss;
  question.flops.reset();
  question.loss = best.loss;
  if (const auto same = optimum(law, question); same.found()) other.flops_overhead = same.total_flops / best.total_flops - 1.0;
  return other;
}

}  // namespace fitting
