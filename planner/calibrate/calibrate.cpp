#include "planner/calibrate/calibrate.h"

#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "fitting/least_squares.h"
#include "planner/calibrate/pricing.h"
#include "planner/parallel.h"

namespace planner {

namespace {

using fitting::Derivatives;
using fitting::Evaluation;
using Point = std::vector<double>;

// Step of numeric derivatives by the logarithm of a parameter: beyond rounding to picoseconds,
// within what is linear.
constexpr double step = 5e-3;

double rounded(double value) {
  if (value == 0.0) return 0.0;
  const double unit = std::pow(10.0, 3.0 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

class Fitting {
 public:
  Fitting(const CalibrationSpec& spec, const std::vector<CalibrationRow>& rows)
      : spec_(spec), rows_(rows), pricing_(spec, rows), n_(spec.parameters.size()) {}

  // Residuals of the rows that are in, and their derivatives by the parameters that reach them; 0
  // of others.
  Evaluation evaluate(const Point& x, Derivatives derivatives, const std::vector<bool>& in) const {
    Evaluation result;
    result.residuals.assign(rows_.size(), 0.0);
    const auto base = pricing_.curves(x);
    parallel_for(rows_.size(), [&](std::size_t i) {
      if (in[i]) result.residuals[i] = pricing_.residual(i, x, base);
    });
    if (derivatives == Derivatives::no) return result;
    result.jacobian.assign(rows_.size() * n_, 0.0);
    for (std::size_t j = 0; j < n_; ++j) {
      auto moved = x;
      moved[j] += step;
      const auto curves = pricing_.curves(moved);
      parallel_for(rows_.size(), [&](std::size_t i) {
        if (!in[i] || !pricing_.reaches(j, i)) return;
        const double there = pricing_.residual(i, moved, curves);
        result.jacobian[i * n_ + j] = (there - result.residuals[i]) / step;
      });
    }
    return result;
  }

  fitting::LeastSquares problem(const Point& start, const std::vector<bool>& in) const {
    fitting::LeastSquares p;
    p.start = start;
    for (std::size_t j = 0; j < n_; ++j) {
      const auto& parameter = spec_.parameters[j];
      p.low.push_back(std::log(parameter.low / parameter.start()));
      p.high.push_back(std::log(parameter.high / parameter.start()));
      p.prior.push_back(0.0);
      p.prior_sigma.push_back(parameter.log_sigma);
    }
    for (std::size_t i = 0; i < rows_.size(); ++i)
      p.weights.push_back(in[i] ? rows_[i].weight : 0.0);
    p.noise = spec_.noise;
    p.huber = spec_.huber;
    return p;
  }

  // Fits all rows. `known` is their evaluation at `start`.
  fitting::Fit fit(const Point& start, const Evaluation& known) const {
    auto p = problem(start, all());
    p.evaluate = [&](const Point& x, Derivatives derivatives) {
      return x == start ? known : evaluate(x, derivatives, all());
    };
    return fitting::fit(p);
  }

  // Fits the rows that are in on the model linearised at a point, with one parameter (or none: n)
  // held at its start.
  Point linear_fit(const Point& at,
                   const Evaluation& known,
                   const std::vector<bool>& in,
                   std::size_t held) const {
    auto p = problem(at, in);
    if (held < n_) {
      p.start[held] = 0.0;
      p.prior_sigma[held] = 1e-9;
    }
    p.evaluate = [&](const Point& x, Derivatives) { return linear(at, known, x); };
    return fitting::fit(p).x;
  }

  Evaluation linear(const Point& at, const Evaluation& known, const Point& x) const {
    auto result = known;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < n_; ++j)
        result.residuals[i] += known.jacobian[i * n_ + j] * (x[j] - at[j]);
    }
    return result;
  }

  std::size_t parameters() const { return n_; }
  std::vector<bool> all() const { return std::vector<bool>(rows_.size(), true); }
  std::vector<bool> of(const std::string& source, bool inside) const {
    std::vector<bool> in;
    for (const auto& row : rows_) in.push_back((row.source == source) == inside);
    return in;
  }
  std::set<std::string> sources() const {
    std::set<std::string> names;
    for (const auto& row : rows_) names.insert(row.source);
    return names;
  }

 private:
  const CalibrationSpec& spec_;
  const std::vector<CalibrationRow>& rows_;
  Pricing pricing_;
  std::size_t n_;
};

// Residuals as relative errors.
simulator::ErrorSummary summary(const std::vector<CalibrationRow>& rows,
                                const std::vector<double>& residuals,
                                const std::string* source) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (source == nullptr || rows[i].source == *source) errors.push_back(std::expm1(residuals[i]));
  }
  return simulator::summary_of(std::move(errors));
}

// Residuals of each row under the fit that leaves its source out: found on the model linearised at
// the fit of all rows, priced exactly.
std::vector<double> left_out(const Fitting& fits, const Point& fitted, const Evaluation& known) {
  std::vector<double> residuals(known.residuals.size(), 0.0);
  for (const auto& source : fits.sources()) {
    const auto without = fits.linear_fit(fitted, known, fits.of(source, false), fits.parameters());
    const auto in = fits.of(source, true);
    const auto there = fits.evaluate(without, Derivatives::no, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i]) residuals[i] = there.residuals[i];
    }
  }
  return residuals;
}

// The same on the linearised model, its median error.
double linear_left_out(const Fitting& fits,
                       const std::vector<CalibrationRow>& rows,
                       const Point& fitted,
                       const Evaluation& known,
                       std::size_t held) {
  std::vector<double> residuals(rows.size(), 0.0);
  for (const auto& source : fits.sources()) {
    const auto x = fits.linear_fit(fitted, known, fits.of(source, false), held);
    const auto there = fits.linear(fitted, known, x);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].source == source) residuals[i] = there.residuals[i];
    }
  }
  return summary(rows, residuals, nullptr).median_abs;
}

}  // namespace

std::vector<double> Calibration::numbers(std::size_t parameter, std::size_t target) const {
  const auto& p = spec.parameters[parameter];
  auto numbers = p.targets[target].start;
  if (fitted[parameter].value == p.start()) return numbers;
  for (auto& number : numbers) number = rounded(number * fitted[parameter].value / p.start());
  return numbers;
}

Calibration calibrate(const CalibrationSpec& spec,
                      const CalibrationRows& given,
                      LeaveOneOut leave_one_out,
                      int threads) {
  using tbb::global_control;
  std::optional<global_control> limit;
  if (threads > 0)
    limit.emplace(global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  const auto& rows = given.rows;
  if (rows.empty())
    throw core::InputError("calibrate: no row of the tables can be predicted and has a step time");
  const Fitting fits(spec, rows);
  const std::size_t n = spec.parameters.size();
  Calibration result;
  result.spec = spec;
  result.rows = rows.size();
  result.skipped = given.skipped;

  const Point start(n, 0.0);
  const auto before = fits.evaluate(start, Derivatives::yes, fits.all());
  const auto fit = fits.fit(start, before);
  result.converged = fit.converged;
  result.message = fit.message;
  result.iterations = fit.iterations;
  Point x;  // as it will be written
  for (std::size_t j = 0; j < n; ++j) {
    const auto& parameter = spec.parameters[j];
    FittedParameter f;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (before.jacobian[i * n + j] != 0.0) ++f.rows_touched;
    }
    const double fitted =
        std::clamp(rounded(parameter.start() * std::exp(fit.x[j])), parameter.low, parameter.high);
    f.value = f.rows_touched == 0 ? parameter.start() : fitted;
    f.standard_error = fit.standard_errors[j];
    f.at_bound = f.rows_touched > 0 && (f.value == parameter.low || f.value == parameter.high);
    x.push_back(std::log(f.value / parameter.start()));
    result.fitted.push_back(f);
  }

  const bool leaves = leave_one_out == LeaveOneOut::yes && fits.sources().size() > 1;
  const auto after = fits.evaluate(x, leaves ? Derivatives::yes : Derivatives::no, fits.all());
  std::optional<std::vector<double>> out;
  if (leaves) {
    out = left_out(fits, x, after);
    const double with_all = linear_left_out(fits, rows, x, after, n);
    parallel_for(n, [&](std::size_t j) {
      if (result.fitted[j].rows_touched > 0)
        result.fitted[j].helps_by = linear_left_out(fits, rows, x, after, j) - with_all;
    });
  }
  const auto add = [&](const std::string& name, const std::string* source) {
    SourceErrors errors{name,
                        summary(rows, before.residuals, source),
                        summary(rows, after.residuals, source),
                        std::nullopt};
    if (out) errors.left_out = summary(rows, *out, source);
    result.sources.push_back(errors);
  };
  for (const auto& source : fits.sources()) add(source, &source);
  add("all", nullptr);
  return result;
}

}  // namespace planner
