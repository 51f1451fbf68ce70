#include "fitting/fit_estimates.h"

#include <cmath>

namespace fitting {

void fill_estimates(FitReport& report, const FitOptions& options) {
  const auto& law = report.law.law;
  const auto interval = [&](auto value_of) -> std::optional<Interval> {
    if (report.law.draws.empty()) return std::nullopt;
    std::vector<double> values;
    for (const auto& draw : report.law.draws) values.push_back(value_of(draw));
    return percentile_interval(std::move(values), options.confidence);
  };
  for (std::size_t j = 0; j < law.parameters.size(); ++j) {
    const auto& name = law.parameters[j].name;
    const bool fixed = options.fixed.count(name) != 0;
    Estimate estimate{name, report.law.parameters[j], std::nullopt, fixed};
    if (!fixed) estimate.interval = interval([&](const auto& draw) { return draw[j]; });
    report.parameters.push_back(std::move(estimate));
  }
  // Hoffmann et al. 2022, Eq. 4: N* = G (C / 6)^a, D* = (C / 6)^b / G.
  if (law.formula != law_of("chinchilla").formula) return;
  const double C = report.law.range.at("C").high;
  const auto exponent = [](const auto& p) { return p[4] / (p[3] + p[4]); };
  const auto ratio = [C](const auto& p) {
    const double a = p[4] / (p[3] + p[4]), G = std::pow(p[3] * p[0] / (p[4] * p[1]), 1.0 / (p[3] + p[4]));
    return std::pow(C / 6.0, 1.0 - 2.0 * a) / (G * G);
  };
  report.derived.push_back({"a", exponent(report.law.parameters), interval(exponent), false});
  report.derived.push_back({"tokens_per_parameter", ratio(report.law.parameters), interval(ratio), false});
}

}  // namespace fitting
