#include "fitting/best_sizes/best_sizes.h"

#include <fmt/format.h>

#include <cmath>

#include "fitting/regression.h"

namespace fitting {
namespace {

std::optional<Interval> interval(const std::vector<PowerLaws>& draws, double confidence, const auto& of) {
  if (draws.empty()) return std::nullopt;
  std::vector<double> values;
  for (const auto& draw : draws) values.push_back(of(draw));
  return percentile_interval(std::move(values), confidence);
}

}  // namespace

PowerLaws power_laws(const std::vector<BestAt>& points, const std::vector<double>& weights) {
  std::vector<double> C, N, D;
  for (const auto& point : points) {
    C.push_back(std::log(point.C)), N.push_back(std::log(point.N)), D.push_back(std::log(point.D));
  }
  const auto size = line_through(C, N, weights), tokens = line_through(C, D, weights);
  return {size.slope, tokens.slope, size.intercept, tokens.intercept, size.r2};
}

void set_estimates(BestSizes& sizes, const PowerLaws& best, const std::vector<PowerLaws>& draws, double confidence) {
  const auto add = [&](std::vector<Estimate>& to, const std::string& name, const auto& of) {
    to.push_back({name, of(best), interval(draws, confidence, of), false});
  };
  add(sizes.parameters, "a", [](const PowerLaws& p) { return p.a; });
  add(sizes.parameters, "b", [](const PowerLaws& p) { return p.b; });
  add(sizes.parameters, "N_coefficient", [](const PowerLaws& p) { return std::exp(p.ln_N); });
  add(sizes.parameters, "D_coefficient", [](const PowerLaws& p) { return std::exp(p.ln_D); });
  const double last = std::log(sizes.points.back().C);
  add(sizes.derived, "tokens_per_parameter", [last](const PowerLaws& p) { return std::exp(p.ln_D - p.ln_N + (p.b - p.a) * last); });
  sizes.r2_log = best.r2;
}

void warn_of_exponents(BestSizes& sizes) {
  const auto& a = sizes.parameters[0];
  const double sum = a.value + sizes.parameters[1].value;
  if (std::fabs(sum - 1.0) > 0.01) {
    sizes.warnings.push_back(fmt::format("a + b = {:.4f}: C of these runs is not 6 N D, or not at the optimum", sum));
  }
  if (a.interval && a.interval->high - a.interval->low > 0.2) {
    sizes.warnings.push_back(fmt::format("a lies anywhere from {:.3f} to {:.3f}", a.interval->low, a.interval->high));
  }
  if (sizes.draws_failed * 100 > sizes.draws) {
    sizes.warnings.push_back(fmt::format("{} of {} bootstrap draws left too little to fit", sizes.draws_failed, sizes.draws));
  }
}

}  // namespace fitting
