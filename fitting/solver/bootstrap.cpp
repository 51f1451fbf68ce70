#include "fitting/solver/bootstrap.h"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fitting/solver/random_rows.h"

namespace fitting {
namespace {

class Draws {
 public:
  Draws(const Solver& solver, const Minimum& minimum, const BootstrapOptions& options)
      : solver_(solver), minimum_(minimum), options_(options), residuals_(solver.residuals(minimum.parameters)) {}

  Minimum draw(std::uint64_t index) const {
    auto random = generator(options_.seed, index);
    const auto n = solver_.rows().size();
    if (options_.resample == Resample::cases) {
      std::vector<double> weights(n, 0.0);
      for (std::size_t i = 0; i < n; ++i) weights[row_of(random, n)] += 1.0;
      return best(solver_, weights);
    }
    auto measured = solver_.rows().measured;
    for (std::size_t i = 0; i < n; ++i) measured[i] *= std::exp(residuals_[row_of(random, n)] - residuals_[i]);
    return best(*solver_.with_measured(std::move(measured)), {});
  }

 private:
  Minimum best(const Solver& solver, const std::vector<double>& weights) const {
    auto minimum = solver.from(minimum_.parameters, weights);
    if (options_.starts.empty()) return minimum;
    const auto basins = solver.from_starts(options_.starts, weights);
    if (!basins.empty() && basins.front().minimum.objective < minimum.objective) return basins.front().minimum;
    return minimum;
  }

  const Solver& solver_;
  const Minimum& minimum_;
  const BootstrapOptions& options_;
  std::vector<double> residuals_;
};

}  // namespace

Bootstrap bootstrap(const Solver& solver, const Minimum& minimum, const BootstrapOptions& options) {
  const Draws draws(solver, minimum, options);
  std::vector<Minimum> minima(static_cast<std::size_t>(options.draws));
  oneapi::tbb::parallel_for(std::size_t{0}, minima.size(), [&](std::size_t i) { minima[i] = draws.draw(i); });
  Bootstrap result;
  for (auto& m : minima) {
    if (!std::isfinite(m.objective)) {
      ++result.failed;
      continue;
    }
    const auto& parameters = solver.law().parameters;
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      if (!at_bound(parameters[j], m.parameters[j])) continue;
      ++result.at_bound;
      break;
    }
    result.draws.push_back(std::move(m.parameters));
  }
  return result;
}

Interval percentile_interval(std::vector<double> values, double confidence) {
  CORE_ASSERT(!values.empty() && confidence > 0.0 && confidence < 1.0);
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {at(0.5 - 0.5 * confidence), at(0.5 + 0.5 * confidence)};
}

bool at_bound(const Parameter& parameter, double value) {
  const double x = parameter.scale == Scale::log ? std::log(value) : value;
  const double near = 1e-6 * (parameter.high - parameter.low);
  return x <= parameter.low + near || x >= parameter.high - near;
}

}  // namespace fitting
