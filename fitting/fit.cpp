#include "fitting/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/io/document.h"
#include "fitting/fit_estimates.h"
#include "fitting/fit_warnings.h"
#include "fitting/solver/reduced.h"

namespace fitting {
namespace {

Rows rows_where(const Rows& rows, const std::vector<bool>& keep) {
  Rows kept;
  kept.columns.resize(rows.columns.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!keep[i]) continue;
    for (std::size_t c = 0; c < rows.columns.size(); ++c) kept.columns[c].push_back(rows.columns[c][i]);
    kept.measured.push_back(rows.measured[i]);
  }
  return kept;
}

std::vector<double> predictions(const Law& law, const std::vector<double>& parameters, const Rows& rows) {
  std::vector<double> values;
  RowFormula(law, rows.columns, rows.size()).evaluate(parameters, values, nullptr);
  return values;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return n == 0 ? 0.0 : 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

HeldOut held_out_of(const std::vector<double>& predicted, const Rows& rows, const std::vector<bool>& out, std::string which) {
  std::vector<double> errors, sizes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!out[i]) continue;
    errors.push_back(predicted[i] / rows.measured[i] - 1.0);
    sizes.push_back(std::fabs(errors.back()));
  }
  return {static_cast<std::int64_t>(errors.size()), median(sizes), median(errors), std::move(which)};
}

// Training FLOPs of each row; empty where the law has none.
std::vector<double> flops_of(const Law& law, const Rows& rows) {
  std::vector<double> flops;
  if (law.training_flops.empty()) return flops;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> variables;
    for (const auto& column : rows.columns) variables.push_back(column[i]);
    flops.push_back(training_flops(law, variables));
  }
  return flops;
}

class Fitting {
 public:
  Fitting(const Law& law, const Rows& rows, const FitOptions& options)
      : options_(options), huber_(options.huber.value_or(law.huber)), reduced_(law, options.fixed, options.tied), rows_(rows) {}

  FitReport run() {
    report_.law.law = reduced_.full();
    report_.huber = huber_;
    const bool asked = std::count(options_.held_out.begin(), options_.held_out.end(), true) != 0;
    std::vector<bool> kept(rows_.size(), true);
    if (asked) kept = inverted(options_.held_out);
    const Solver solver(reduced_.law(), rows_where(rows_, kept), huber_);
    report_.rows = static_cast<std::int64_t>(solver.rows().size());
    check_rows(solver);
    search(solver);
    report_.predicted = predictions(report_.law.law, report_.law.parameters, rows_);
    report_.r2_log = r2(solver);
    find_outliers(solver, kept);
    for (const auto& [name, parameters] : options_.compare) report_.compared.emplace_back(name, objective_at(solver, parameters));
    if (asked) report_.held_out = held_out_of(report_.predicted, rows_, options_.held_out, "as asked");
    else hold_out_the_largest();
    if (options_.bootstrap > 0) resample(solver);
    for (const auto& name : options_.profile) profile(solver, name);
    set_ranges(solver);
    fill_estimates(report_, options_);
    for (auto& warning : warnings_of(report_, solver, options_)) report_.warnings.push_back(std::move(warning));
    report_.law.warnings = report_.warnings;
    return std::move(report_);
  }

 private:
  static std::vector<bool> inverted(std::vector<bool> bits) {
    bits.flip();
    return bits;
  }

  void check_rows(const Solver& solver) const {
    const auto parameters = reduced_.law().parameters.size();
    if (solver.rows().size() > parameters) return;
    throw core::InputError(fmt::format("{}: found {} rows, expected more than its {} parameters", reduced_.full().name,
                                       solver.rows().size(), parameters));
  }

  // The best minimum of the starts, then from points around it: with Huber's losses there may be others close by.
  void search(const Solver& solver) {
    const auto starts = starts_of(reduced_.law(), options_.starts);
    auto basins = solver.from_starts(starts);
    if (basins.empty()) {
      throw core::InputError(fmt::format("{}: found no start at which the law is positive on all rows, expected one", reduced_.full().name));
    }
    polish(solver, basins);
    const auto& best = basins.front();
    report_.batched = solver.batched();
    report_.objective = best.minimum.objective;
    report_.converged = best.minimum.converged;
    report_.starts = solver.descents(starts.size());
    report_.starts_at_best = best.starts;
    best_ = best.minimum;
    report_.law.parameters = reduced_.expand(best_.parameters);
    for (auto& basin : basins) {
      if (basin.minimum.objective > 1.02 * report_.objective + 1e-300) break;
      basin.minimum.parameters = reduced_.expand(basin.minimum.parameters);
      report_.minima.push_back(std::move(basin));
    }
  }

  // Parameter by parameter, small and large steps, until none finds less.
  static void polish(const Solver& solver, std::vector<Basin>& basins) {
    auto& best = basins.front().minimum;
    bool better = true;
    for (int round = 0; better && round < 4; ++round) {
      better = false;
      for (std::size_t j = 0; j < best.parameters.size(); ++j) {
        for (const double factor : {0.5, 0.8, 0.97, 1.03, 1.25, 2.0}) {
          auto near = best.parameters;
          near[j] *= factor;
          auto found = solver.from(near);
          if (!(found.objective < (1.0 - 1e-10) * best.objective)) continue;
          best = std::move(found);
          better = true;
        }
      }
    }
  }

  void find_outliers(const Solver& solver, const std::vector<bool>& kept) {
    report_.outliers = outliers_of(solver, best_.parameters);
    if (!report_.outliers) return;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i]) places.push_back(i);
    }
    for (auto& row : report_.outliers->rows) row = places[row];
    report_.outliers->parameters = reduced_.expand(report_.outliers->parameters);
  }

  // Of all parameters at given values.
  double objective_at(const Solver& solver, const std::vector<double>& parameters) const {
    return Solver(reduced_.full(), solver.rows(), huber_).objective(parameters);
  }

  double r2(const Solver& solver) const {
    const auto residuals = solver.residuals(best_.parameters);
    double mean = 0.0, around = 0.0, left = 0.0;
    for (const double y : solver.rows().measured) mean += std::log(y) / static_cast<double>(residuals.size());
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      left += residuals[i] * residuals[i];
      around += std::pow(std::log(solver.rows().measured[i]) - mean, 2);
    }
    return around > 0.0 ? 1.0 - left / around : 0.0;
  }

  // How the law extrapolates: fitted to the four fifths of least compute, held against the rest.
  void hold_out_the_largest() {
    const auto flops = flops_of(report_.law.law, rows_);
    if (flops.empty() || rows_.size() < 5 * reduced_.law().parameters.size()) return;
    auto sorted = flops;
    std::sort(sorted.begin(), sorted.end());
    const double cut = sorted[sorted.size() * 4 / 5];
    std::vector<bool> out;
    for (const double c : flops) out.push_back(c > cut);
    const auto count = std::count(out.begin(), out.end(), true);
    if (count == 0) return;
    const Solver below(reduced_.law(), rows_where(rows_, inverted(out)), huber_);
    const auto basins = below.from_starts(starts_of(reduced_.law(), std::min<std::int64_t>(options_.starts, 200)));
    auto minimum = below.from(best_.parameters);
    if (!basins.empty() && basins.front().minimum.objective < minimum.objective) minimum = basins.front().minimum;
    const auto predicted = predictions(report_.law.law, reduced_.expand(minimum.parameters), rows_);
    report_.held_out = held_out_of(predicted, rows_, out, fmt::format("C > {:.3g}, fitted to the rest", cut));
  }

  void resample(const Solver& solver) {
    BootstrapOptions options;
    options.draws = options_.bootstrap;
    options.seed = options_.seed;
    options.resample = options_.resample;
    if (options_.bootstrap_starts > 0) options.starts = starts_of(reduced_.law(), options_.bootstrap_starts);
    auto result = bootstrap(solver, best_, options);
    report_.draws = options.draws;
    report_.draws_failed = result.failed;
    report_.draws_at_bound = result.at_bound;
    for (auto& draw : result.draws) report_.law.draws.push_back(reduced_.expand(draw));
  }

  // Along a parameter, from a third to three times its value.
  void profile(const Solver& solver, const std::string& name) {
    const auto& parameters = reduced_.law().parameters;
    const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
    if (found == parameters.end()) throw core::InputError(fmt::format("--profile: found \"{}\", expected a parameter that is fitted", core::printable(name)));
    const auto at = static_cast<std::size_t>(found - parameters.begin());
    constexpr int points = 41;
    Profile result{name, {}, {}};
    for (int i = 0; i < points; ++i) {
      const double value = best_.parameters[at] * std::pow(3.0, 2.0 * i / (points - 1.0) - 1.0);
      const Reduced held(reduced_.law(), {{name, value}}, {});
      const Solver rest(held.law(), solver.rows(), huber_);
      auto start = best_.parameters;
      start.erase(start.begin() + static_cast<std::ptrdiff_t>(at));
      auto minimum = rest.from(start);
      for (const auto& basin : rest.from_starts(starts_of(held.law(), 20))) {
        if (basin.minimum.objective < minimum.objective) minimum = basin.minimum;
      }
      result.values.push_back(value);
      result.objectives.push_back(minimum.objective);
    }
    report_.profiles.push_back(std::move(result));
  }

  void set_ranges(const Solver& solver) {
    const auto add = [&](const std::string& name, const std::vector<double>& values) {
      if (values.empty()) return;
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      report_.law.range[name] = {*low, *high};
    };
    for (std::size_t c = 0; c < solver.rows().columns.size(); ++c) add(report_.law.law.variables[c].name, solver.rows().columns[c]);
    add("C", flops_of(report_.law.law, solver.rows()));
  }

  const FitOptions& options_;
  double huber_;
  Reduced reduced_;
  const Rows& rows_;
  Minimum best_;
  FitReport report_;
};

}  // namespace

FitReport fit(const Law& law, const Rows& rows, const FitOptions& options) { return Fitting(law, rows, options).run(); }

}  // namespace fitting
