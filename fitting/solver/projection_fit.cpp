#include "fitting/solver/projection_fit.h"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fitting/fit_estimates.h"
#include "fitting/fit_warnings.h"
#include "fitting/solver/projection.h"
#include "fitting/solver/random_rows.h"

namespace fitting {
namespace {

// In the order of the law's parameters.
std::vector<double> parameters_of(const Projected& p) { return {p.A, p.B, p.E, p.alpha, p.beta}; }

double value_of(const Projected& p, double N, double D) { return p.E + p.A * std::pow(N, -p.alpha) + p.B * std::pow(D, -p.beta); }

void require_no(const FitOptions& options) {
  const char* found = !options.fixed.empty()     ? "--fix or --from"
                      : !options.tied.empty()    ? "--tie"
                      : !options.profile.empty() ? "--profile"
                      : !options.compare.empty() ? "--compare"
                      : options.huber            ? "--huber"
                                                 : nullptr;
  if (found != nullptr) throw core::InputError(fmt::format("--method vp: found {}, which it does not have, expected --method huber with it", found));
}

class ProjectionFit {
 public:
  ProjectionFit(const Law& law, const Rows& rows, const FitOptions& options) : law_(law), options_(options), rows_(rows) {
    fitted_.columns.resize(2);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!options.held_out.empty() && options.held_out[i]) continue;
      for (std::size_t c = 0; c < 2; ++c) fitted_.columns[c].push_back(rows.columns[c][i]);
      fitted_.measured.push_back(rows.measured[i]);
    }
    if (fitted_.size() <= law.parameters.size()) {
      throw core::InputError(fmt::format("{}: found {} rows, expected more than its {} parameters", law.name, fitted_.size(), law.parameters.size()));
    }
  }

  FitReport run() {
    best_ = project(N(), D(), fitted_.measured);
    report_.law.law = law_;
    report_.law.parameters = parameters_of(best_);
    report_.projected = true;
    report_.objective = best_.squares;
    report_.converged = best_.converged;
    report_.starts = report_.starts_at_best = 1;
    report_.rows = static_cast<std::int64_t>(fitted_.size());
    report_.minima = {{{report_.law.parameters, best_.squares, best_.converged}, 1}};
    for (std::size_t i = 0; i < rows_.size(); ++i) report_.predicted.push_back(value_of(best_, rows_.columns[0][i], rows_.columns[1][i]));
    report_.r2_log = r2_of_logarithms();
    hold_out();
    resample();
    set_ranges();
    fill_estimates(report_, options_);
    report_.warnings = warnings_of(report_, Solver(law_, fitted_, 1.0), options_);
    report_.law.warnings = report_.warnings;
    return std::move(report_);
  }

 private:
  const std::vector<double>& N() const { return fitted_.columns[0]; }
  const std::vector<double>& D() const { return fitted_.columns[1]; }

  double r2_of_logarithms() const {
    double mean = 0.0, around = 0.0, left = 0.0;
    const auto n = static_cast<double>(fitted_.size());
    for (const double L : fitted_.measured) mean += std::log(L) / n;
    for (std::size_t i = 0; i < fitted_.size(); ++i) {
      left += std::pow(std::log(fitted_.measured[i] / value_of(best_, N()[i], D()[i])), 2);
      around += std::pow(std::log(fitted_.measured[i]) - mean, 2);
    }
    return around > 0.0 ? 1.0 - left / around : 0.0;
  }

  void hold_out() {
    std::vector<double> errors, sizes;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (options_.held_out.empty() || !options_.held_out[i]) continue;
      errors.push_back(report_.predicted[i] / rows_.measured[i] - 1.0);
      sizes.push_back(std::fabs(errors.back()));
    }
    if (errors.empty()) return;
    const auto median = [](std::vector<double> v) {
      std::sort(v.begin(), v.end());
      return 0.5 * (v[(v.size() - 1) / 2] + v[v.size() / 2]);
    };
    report_.held_out = {static_cast<std::int64_t>(errors.size()), median(sizes), median(errors), "as asked"};
  }

  Projected draw(std::uint64_t index) const {
    auto random = generator(options_.seed, index);
    const auto n = fitted_.size();
    if (options_.resample == Resample::cases) {
      std::vector<double> weights(n, 0.0);
      for (std::size_t i = 0; i < n; ++i) weights[row_of(random, n)] += 1.0;
      return project(N(), D(), fitted_.measured, weights, best_);
    }
    std::vector<double> measured;
    for (std::size_t i = 0; i < n; ++i) {
      const auto from = row_of(random, n);
      measured.push_back(value_of(best_, N()[i], D()[i]) + fitted_.measured[from] - value_of(best_, N()[from], D()[from]));
    }
    return project(N(), D(), measured, {}, best_);
  }

  void resample() {
    std::vector<Projected> draws(static_cast<std::size_t>(options_.bootstrap));
    oneapi::tbb::parallel_for(std::size_t{0}, draws.size(), [&](std::size_t i) { draws[i] = draw(i); });
    report_.draws = options_.bootstrap;
    for (const auto& one : draws) {
      if (!std::isfinite(one.squares)) {
        ++report_.draws_failed;
        continue;
      }
      if (!one.converged) ++report_.draws_at_bound;
      report_.law.draws.push_back(parameters_of(one));
    }
  }

  void set_ranges() {
    const auto add = [&](const char* name, const std::vector<double>& values) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      report_.law.range[name] = {*low, *high};
    };
    std::vector<double> C;
    for (std::size_t i = 0; i < fitted_.size(); ++i) C.push_back(training_flops(law_, {N()[i], D()[i]}));
    add("N", N());
    add("D", D());
    add("C", C);
  }

  const Law& law_;
  const FitOptions& options_;
  const Rows& rows_;
  Rows fitted_;
  Projected best_;
  FitReport report_;
};

}  // namespace

FitReport fit_by_projection(const Law& law, const Rows& rows, const FitOptions& options) {
  if (law.formula != law_of("chinchilla").formula) throw core::InputError(fmt::format("--method vp: found {}, expected chinchilla", law.name));
  require_no(options);
  return ProjectionFit(law, rows, options).run();
}

}  // namespace fitting
