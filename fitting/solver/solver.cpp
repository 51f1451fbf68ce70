#include "fitting/solver/solver.h"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "fitting/solver/descent.h"
#include "fitting/solver/row_fit.h"

namespace fitting {
namespace {

Bounds bounds_of(const Law& law) {
  Bounds bounds;
  for (const auto& parameter : law.parameters) {
    bounds.low.push_back(parameter.low);
    bounds.high.push_back(parameter.high);
  }
  return bounds;
}

constexpr double wide = 1.0;  // threshold of least squares of logarithms, for all but wild rows

// Ends of least squares that lie so many times above the best lead nowhere: their minima are listed nowhere either.
constexpr double hopeless = 16.0;

constexpr std::size_t most_direct = 200;  // starts that go down without least squares first

bool same_objective(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::max(std::fabs(a), std::fabs(b)); }

// Values of a parameter's starts, `count` of them from half a range below to half a range above.
std::vector<double> denser(const Parameter& parameter, int count) {
  const auto [low, high] = std::minmax_element(parameter.starts.begin(), parameter.starts.end());
  const double width = std::max(*high - *low, 1e-3);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(std::clamp(*low + width * (2.0 * i / (count - 1.0) - 0.5), parameter.low, parameter.high));
  }
  return values;
}

Law with_dense_starts(Law law) {
  if (law.parameters.size() > 2) return law;
  for (auto& parameter : law.parameters) {
    if (parameter.starts.size() < 14) parameter.starts = denser(parameter, 14);
  }
  return law;
}

bool alike(const Minimum& a, const Minimum& b) {
  if (!same_objective(a.objective, b.objective)) return false;
  for (std::size_t j = 0; j < a.parameters.size(); ++j) {
    const double x = a.parameters[j], y = b.parameters[j];
    if (std::fabs(x - y) > 1e-2 * std::max(std::fabs(x), std::fabs(y)) + 1e-9) return false;
  }
  return true;
}

}  // namespace

Solver::Solver(Law law, Rows rows, double huber)
    : law_(std::move(law)), rows_(std::move(rows)), huber_(huber), bounds_(bounds_of(law_)),
      formula_(law_, rows_.columns, rows_.size()), log_sum_(log_sum_of(law_, rows_)) {
  CORE_ASSERT(huber_ > 0.0 && rows_.size() > 0);
}

std::unique_ptr<Objective> Solver::objective_of(const std::vector<double>& weights) const {
  return log_sum_ ? log_sum_objective(*log_sum_, weights) : row_objective(law_, formula_, rows_.measured, weights);
}

Solver::Coarse Solver::coarse(const std::vector<double>& start, const std::vector<double>& weights) const {
  Coarse result{start, std::numeric_limits<double>::infinity(), false};
  if (!log_sum_ && !approach(law_, formula_, rows_.measured, weights, wide, bounds_, result.x)) return result;
  // Basins of least squares are told by some rows: about 80 of them.
  const auto objective = log_sum_ ? log_sum_objective(*log_sum_, weights, 1 + rows_.size() / 160) : objective_of(weights);
  if (log_sum_) descend(*objective, bounds_, {wide, 1e-6, 100}, result.x);
  result.objective = objective->at(result.x, wide);
  result.usable = std::isfinite(result.objective);
  return result;
}

// Narrows the threshold step by step: with 1e-3 at once, far rows pull all alike and the steps are short.
Minimum Solver::finish(std::vector<double> x, const std::vector<double>& weights) const {
  if (log_sum_) {
    const auto objective = objective_of(weights);
    for (double huber = wide; huber > 1.5 * huber_; huber *= 0.3) descend(*objective, bounds_, {huber, 1e-4, 20}, x);
  } else {
    for (double huber = 0.1; huber > 1.5 * huber_; huber *= 0.1) approach(law_, formula_, rows_.measured, weights, huber, bounds_, x);
    approach(law_, formula_, rows_.measured, weights, huber_, bounds_, x);
  }
  return down(std::move(x), weights);
}

Minimum Solver::down(std::vector<double> x, const std::vector<double>& weights) const {
  const auto objective = objective_of(weights);
  Minimum minimum;
  minimum.converged = descend(*objective, bounds_, {huber_, 1e-15, log_sum_ ? 400 : 100}, x);
  minimum.objective = objective->at(x, huber_);
  minimum.parameters = to_formula(law_, std::move(x));
  return minimum;
}

std::int64_t Solver::descents(std::size_t starts) const {
  return static_cast<std::int64_t>(starts + (log_sum_ ? 0 : std::min(most_direct, starts)));
}

Minimum Solver::from(const std::vector<double>& parameters, const std::vector<double>& weights) const {
  return down(to_search(law_, parameters), weights);
}

double Solver::objective(const std::vector<double>& parameters, const std::vector<double>& weights) const {
  return objective_of(weights)->at(to_search(law_, parameters), huber_);
}

std::unique_ptr<Solver> Solver::with_measured(std::vector<double> measured) const {
  auto rows = rows_;
  rows.measured = std::move(measured);
  return std::make_unique<Solver>(law_, std::move(rows), huber_);
}

std::vector<double> Solver::residuals(const std::vector<double>& parameters) const {
  std::vector<double> values;
  formula_.evaluate(parameters, values, nullptr);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::log(rows_.measured[i] / values[i]);
  return values;
}

std::vector<Basin> Solver::from_starts(const std::vector<std::vector<double>>& starts, const std::vector<double>& weights) const {
  std::vector<Coarse> ends(starts.size());
  oneapi::tbb::parallel_for(std::size_t{0}, starts.size(), [&](std::size_t i) { ends[i] = coarse(starts[i], weights); });
  std::stable_sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.objective < b.objective; });
  std::vector<std::pair<const Coarse*, std::int64_t>> met;  // one of each, how many
  for (const auto& end : ends) {
    if (!end.usable || end.objective > hopeless * ends.front().objective) continue;
    if (!met.empty() && same_objective(met.back().first->objective, end.objective)) ++met.back().second;
    else met.emplace_back(&end, 1);
  }
  std::vector<Basin> basins(met.size());
  oneapi::tbb::parallel_for(std::size_t{0}, met.size(), [&](std::size_t i) { basins[i] = {finish(met[i].first->x, weights), met[i].second}; });
  if (!log_sum_) add_direct(starts, weights, basins);
  std::stable_sort(basins.begin(), basins.end(), [](const auto& a, const auto& b) { return a.minimum.objective < b.minimum.objective; });
  std::vector<Basin> distinct;
  for (auto& basin : basins) {
    if (!std::isfinite(basin.minimum.objective)) continue;
    const auto known = std::find_if(distinct.begin(), distinct.end(), [&](const auto& d) { return alike(d.minimum, basin.minimum); });
    if (known != distinct.end()) known->starts += basin.starts;
    else distinct.push_back(std::move(basin));
  }
  return distinct;
}

// With kinks in a law (min, max) one basin of least squares may hold several minima: some starts go down without it.
void Solver::add_direct(const std::vector<std::vector<double>>& starts, const std::vector<double>& weights, std::vector<Basin>& basins) const {
  const auto count = std::min(most_direct, starts.size());
  std::vector<Basin> direct(count);
  oneapi::tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
    auto x = starts[i * starts.size() / count];
    const bool usable = approach(law_, formula_, rows_.measured, weights, huber_, bounds_, x);
    direct[i] = {usable ? down(std::move(x), weights) : Minimum{{}, std::numeric_limits<double>::infinity(), false}, 1};
  });
  basins.insert(basins.end(), direct.begin(), direct.end());
}

std::vector<std::vector<double>> starts_of(const Law& given, std::int64_t most) {
  const auto law = with_dense_starts(given);  // of one or two parameters all can be tried
  std::int64_t all = 1;
  for (const auto& parameter : law.parameters) {
    CORE_ASSERT(!parameter.starts.empty());
    all *= static_cast<std::int64_t>(parameter.starts.size());
    CORE_ASSERT(all < std::int64_t{1} << 40);
  }
  const auto count = std::min(all, std::max<std::int64_t>(most, 1));
  std::vector<std::vector<double>> starts;
  for (std::int64_t i = 0; i < count; ++i) {
    // A stride of the golden section visits combinations that differ in all places.
    auto place = count == all ? i : static_cast<std::int64_t>(std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0) * static_cast<double>(all));
    std::vector<double> start(law.parameters.size());
    for (std::size_t j = start.size(); j-- > 0;) {
      const auto& values = law.parameters[j].starts;
      start[j] = values[static_cast<std::size_t>(place) % values.size()];
      place /= static_cast<std::int64_t>(values.size());
    }
    starts.push_back(std::move(start));
  }
  return starts;
}

}  // namespace fitting
