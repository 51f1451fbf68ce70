#include "planner/calibrate/fit_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "fitting/least_squares.h"
#include "planner/calibrate/one_factor.h"
#include "planner/parallel.h"

namespace planner {

namespace {

using fitting::Derivatives;
using fitting::Evaluation;
using Point = std::vector<double>;

// Step of numeric derivatives by the logarithm of a parameter: beyond rounding to picoseconds,
// within what is linear.
constexpr double step = 5e-3;

// To six significant digits, as the shortest text of them reads back.
double rounded(double value) { return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr); }

class Fitting {
 public:
  Fitting(const CalibrationSpec& spec, const Observations& observed)
      : spec_(spec), observed_(observed), rows_(observed.rows), n_(spec.parameters.size()) {}

  // Residuals of the rows that are in, and their derivatives by the parameters that reach them; 0
  // of others.
  Evaluation evaluate(const Point& x, Derivatives derivatives, const std::vector<bool>& in) const {
    const bool moves = derivatives == Derivatives::yes;
    Evaluation result;
    result.residuals.assign(rows_.size(), 0.0);
    if (moves) result.jacobian.assign(rows_.size() * n_, 0.0);
    std::vector<Point> points = {x};  // then x with one parameter moved
    for (std::size_t j = 0; moves && j < n_; ++j) {
      points.push_back(x);
      points.back()[j] += step;
    }
    const auto at = observed_.at(points);
    parallel_for(rows_.size(), [&](std::size_t i) {
      if (!in[i]) return;
      std::vector<std::size_t> which = {0};
      for (std::size_t j = 0; moves && j < n_; ++j) {
        if (observed_.reaches(j, i)) which.push_back(j + 1);
      }
      const auto residuals = at(i, which);
      result.residuals[i] = residuals.front();
      for (std::size_t k = 1; k < which.size(); ++k)
        result.jacobian[i * n_ + which[k] - 1] = (residuals[k] - residuals.front()) / step;
    });
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
    p.tolerance = observed_.tolerance;
    return p;
  }

  // Fits all rows that are not held back. `known` is their evaluation at `start`.
  fitting::Fit fit(const Point& start, const Evaluation& known) const {
    auto p = problem(start, fitted());
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
  std::vector<bool> fitted() const {
    std::vector<bool> in;
    for (const auto& row : rows_) in.push_back(!row.held_back);
    return in;
  }
  std::vector<bool> of(const std::string& source) const {
    std::vector<bool> in;
    for (const auto& row : rows_) in.push_back(row.source == source);
    return in;
  }
  // What a fit without the source is made on.
  std::vector<bool> without(const std::string& source) const {
    std::vector<bool> in;
    for (const auto& row : rows_) in.push_back(row.source != source && !row.held_back);
    return in;
  }
  // Rows that are fitted.
  std::vector<bool> of_group(const std::string& group) const {
    std::vector<bool> in;
    for (const auto& row : rows_)
      in.push_back(!row.held_back && std::ranges::find(row.groups, group) != row.groups.end());
    return in;
  }
  std::set<std::string> groups() const {
    std::set<std::string> names;
    for (const auto& row : rows_) {
      if (!row.held_back) names.insert(row.groups.begin(), row.groups.end());
    }
    return names;
  }
  std::set<std::string> sources() const {
    std::set<std::string> names;
    for (const auto& row : rows_) names.insert(row.source);
    return names;
  }

 private:
  const CalibrationSpec& spec_;
  const Observations& observed_;
  const std::vector<Observations::Row>& rows_;
  std::size_t n_;
};

// Residuals as relative errors, of the rows that are in.
simulator::ErrorSummary summary(const std::vector<double>& residuals, const std::vector<bool>& in) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    if (in[i]) errors.push_back(std::expm1(residuals[i]));
  }
  return simulator::summary_of(std::move(errors));
}

// Errors that some rows have, of those that are in.
simulator::ErrorSummary summary(const std::vector<std::optional<double>>& errors, const std::vector<bool>& in) {
  std::vector<double> known;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (in[i] && errors[i]) known.push_back(*errors[i]);
  }
  return simulator::summary_of(std::move(known));
}

// Residuals of each row under the fit that leaves its source out: found on the model linearised at
// the fit of all rows, priced exactly.
std::vector<double> left_out(const Fitting& fits, const Point& fitted, const Evaluation& known) {
  std::vector<double> residuals(known.residuals.size(), 0.0);
  for (const auto& source : fits.sources()) {
    const auto without = fits.linear_fit(fitted, known, fits.without(source), fits.parameters());
    const auto in = fits.of(source);
    const auto there = fits.evaluate(without, Derivatives::no, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i]) residuals[i] = there.residuals[i];
    }
  }
  return residuals;
}

// The same on the linearised model, its median error.
double linear_left_out(const Fitting& fits, const Point& fitted, const Evaluation& known, std::size_t held) {
  std::vector<double> residuals(known.residuals.size(), 0.0);
  for (const auto& source : fits.sources()) {
    const auto x = fits.linear_fit(fitted, known, fits.without(source), held);
    const auto there = fits.linear(fitted, known, x);
    const auto in = fits.of(source);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i]) residuals[i] = there.residuals[i];
    }
  }
  return summary(residuals, fits.fitted()).median_abs;
}

FittedParameter fitted_parameter(const Parameter& parameter,
                                 double x,
                                 double standard_error,
                                 std::size_t rows_touched) {
  FittedParameter f;
  f.rows_touched = rows_touched;
  f.standard_error = standard_error;
  f.value = parameter.start();
  if (rows_touched == 0) return f;
  f.value = std::clamp(rounded(parameter.start() * std::exp(x)), parameter.low, parameter.high);
  f.at_bound = f.value == parameter.low || f.value == parameter.high;
  return f;
}

std::size_t rows_touched(const Evaluation& at, const std::vector<bool>& in, std::size_t parameter) {
  const std::size_t n = at.jacobian.size() / in.size();
  std::size_t touched = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] && at.jacobian[i * n + parameter] != 0.0) ++touched;
  }
  return touched;
}

}  // namespace

std::vector<double> Calibration::numbers(std::size_t parameter, std::size_t target) const {
  const auto& p = spec.parameters[parameter];
  auto numbers = p.targets[target].start;
  if (fitted[parameter].value == p.start()) return numbers;
  for (auto& number : numbers) number = rounded(number * fitted[parameter].value / p.start());
  return numbers;
}

Calibration fit_constants(const CalibrationSpec& spec,
                          const Observations& observed,
                          LeaveOneOut leave_one_out) {
  const auto& rows = observed.rows;
  const Fitting fits(spec, observed);
  const std::size_t n = spec.parameters.size();
  Calibration result;
  result.spec = spec;
  for (const auto& row : rows) ++(row.held_back ? result.held_back : result.rows);

  const Point start(n, 0.0);
  const auto before = fits.evaluate(start, Derivatives::yes, fits.all());
  const auto fit = fits.fit(start, before);
  result.converged = fit.converged;
  result.message = fit.message;
  result.iterations = fit.iterations;
  Point x;  // as it will be written
  for (std::size_t j = 0; j < n; ++j) {
    const auto& parameter = spec.parameters[j];
    result.fitted.push_back(fitted_parameter(
        parameter, fit.x[j], fit.standard_errors[j], rows_touched(before, fits.fitted(), j)));
    x.push_back(std::log(result.fitted[j].value / parameter.start()));
  }

  const bool leaves = leave_one_out == LeaveOneOut::yes && fits.sources().size() > 1;
  const auto after = fits.evaluate(x, leaves ? Derivatives::yes : Derivatives::no, fits.all());
  std::optional<std::vector<double>> out;
  std::vector<std::optional<double>> factored;
  if (leaves) {
    out = left_out(fits, x, after);
    factored = errors_after_one_factor(rows, *out);
    const double with_all = linear_left_out(fits, x, after, n);
    parallel_for(n, [&](std::size_t j) {
      if (result.fitted[j].rows_touched > 0)
        result.fitted[j].helps_by = linear_left_out(fits, x, after, j) - with_all;
    });
  }
  const auto errors_of = [&](const std::string& name, const std::vector<bool>& in) {
    SourceErrors errors{
        name, summary(before.residuals, in), summary(after.residuals, in), std::nullopt, std::nullopt};
    if (!out) return errors;
    errors.left_out = summary(*out, in);
    errors.one_factor = summary(factored, in);
    return errors;
  };
  for (const auto& source : fits.sources()) result.sources.push_back(errors_of(source, fits.of(source)));
  result.sources.push_back(errors_of("all", fits.fitted()));
  for (const auto& group : fits.groups()) result.groups.push_back(errors_of(group, fits.of_group(group)));
  return result;
}

}  // namespace planner
