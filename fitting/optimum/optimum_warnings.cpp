#include "fitting/optimum/optimum_warnings.h"

#include <fmt/format.h>

#include <cmath>

namespace fitting {
namespace {

constexpr double far = 100.0;          // budgets over the largest fitted one
constexpr double wide_exponent = 0.2;  // an interval of the exponent that tells little

void warn_outside(const FittedLaw& law, Optimum& answer) {
  const auto range = [&](const char* name) -> const Interval* {
    const auto found = law.range.find(name);
    return found == law.range.end() ? nullptr : &found->second;
  };
  if (const auto* c = range("C"); c != nullptr && answer.flops > far * c->high) {
    answer.warnings.push_back(fmt::format("{:.3g} FLOPs are {:.0f} times the largest budget that {} was fitted on ({:.3g})",
                                          answer.flops, answer.flops / c->high, law.name, c->high));
  }
  if (const auto* n = range("N"); n != nullptr) {
    if (answer.N < n->low) {
      answer.warnings.push_back(
          fmt::format("{:.3g} parameters are fewer than the smallest run of {} had ({:.3g})", answer.N, law.name, n->low));
    } else if (answer.N > far * n->high) {
      answer.warnings.push_back(fmt::format("{:.3g} parameters are {:.0f} times those of the largest run of {} ({:.3g})",
                                            answer.N, answer.N / n->high, law.name, n->high));
    }
  }
  if (const auto* ratio = range("D/N"); ratio != nullptr && (answer.D / answer.N < ratio->low || answer.D / answer.N > ratio->high)) {
    answer.warnings.push_back(fmt::format("{:.3g} tokens a parameter lie outside of the runs of {} ({:.3g} to {:.3g})",
                                          answer.D / answer.N, law.name, ratio->low, ratio->high));
  }
}

void warn_assumed(const FittedLaw& law, const OptimumQuestion& question, Optimum& answer) {
  for (const auto& variable : law.law.variables) {
    if (variable.name == "U" && !question.unique_tokens && question.fixed.count("U") == 0) {
      answer.warnings.push_back("unique tokens are not given: taken as unlimited");
    } else if (variable.otherwise && question.fixed.count(variable.name) == 0) {
      answer.warnings.push_back(fmt::format("{} ({}) is not given: {} is taken", variable.name, variable.meaning, *variable.otherwise));
    }
  }
}

}  // namespace

void warn(const FittedLaw& law, const OptimumQuestion& question, Optimum& answer) {
  for (const auto& warning : law.warnings) answer.warnings.push_back(fmt::format("{}: {}", law.name, warning));
  warn_assumed(law, question, answer);
  if (!answer.found()) return;
  warn_outside(law, answer);
  if (const auto& range = answer.exponent_range; range && range->high - range->low > wide_exponent) {
    answer.warnings.push_back(
        fmt::format("how the best size grows with FLOPs is uncertain: C^{:.2f} to C^{:.2f}", range->low, range->high));
  }
}

}  // namespace fitting
