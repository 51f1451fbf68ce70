#include "fitting/solver/row_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "fitting/least_squares.h"

namespace fitting {
namespace {

class RowObjective : public Objective {
 public:
  RowObjective(const Law& law, const RowFormula& formula, const std::vector<double>& measured, const std::vector<double>& weights)
      : law_(law), formula_(formula), weights_(weights) {
    for (const double value : measured) logs_.push_back(std::log(value));
  }

  double at(const std::vector<double>& x, double huber) override {
    ++evaluations;
    x_ = x;
    huber_ = huber;
    formula_.evaluate(to_formula(law_, x), values_, nullptr);
    double sum = 0.0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (weight(i) == 0.0) continue;
      if (!(values_[i] > 0.0) || !std::isfinite(values_[i])) return std::numeric_limits<double>::infinity();
      const double size = std::fabs(logs_[i] - std::log(values_[i]));
      const double clipped = std::min(size, huber);
      sum += weight(i) * clipped * (size - 0.5 * clipped);
    }
    return sum;
  }

  void derivatives(std::vector<double>& gradient, std::vector<double>& hessian) override {
    const auto n = x_.size();
    gradient = gradient_at(x_);
    hessian.assign(n * n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
      const double step = 1e-6 * std::max(1.0, std::fabs(x_[j]));
      auto low = x_, high = x_;
      low[j] -= step;
      high[j] += step;
      const auto below = gradient_at(low), above = gradient_at(high);
      for (std::size_t i = 0; i < n; ++i) {
        const double second = 0.5 * (above[i] - below[i]) / (high[j] - low[j]);
        hessian[i * n + j] += second;
        hessian[j * n + i] += second;
      }
    }
  }

 private:
  double weight(std::size_t row) const { return weights_.empty() ? 1.0 : weights_[row]; }

  std::vector<double> gradient_at(const std::vector<double>& x) {
    const auto parameters = to_formula(law_, x);
    formula_.evaluate(parameters, values_, &jacobian_);
    std::vector<double> gradient(x.size(), 0.0);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (weight(i) == 0.0 || !(values_[i] > 0.0)) continue;
      const double psi = weight(i) * std::clamp(logs_[i] - std::log(values_[i]), -huber_, huber_);
      for (std::size_t j = 0; j < x.size(); ++j) gradient[j] -= psi * jacobian_[i * x.size() + j] / values_[i];
    }
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (law_.parameters[j].scale == Scale::log) gradient[j] *= parameters[j];
    }
    return gradient;
  }

  const Law& law_;
  const RowFormula& formula_;
  std::vector<double> weights_, logs_, x_, values_, jacobian_;  // logs_: of what was measured
  double huber_ = 1.0;
};

}  // namespace

std::vector<double> to_formula(const Law& law, std::vector<double> x) {
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (law.parameters[j].scale == Scale::log) x[j] = std::exp(x[j]);
  }
  return x;
}

std::vector<double> to_search(const Law& law, std::vector<double> parameters) {
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    if (law.parameters[j].scale == Scale::log) parameters[j] = std::log(parameters[j]);
  }
  return parameters;
}

std::unique_ptr<Objective> row_objective(const Law& law, const RowFormula& formula, const std::vector<double>& measured,
                                         const std::vector<double>& weights) {
  return std::make_unique<RowObjective>(law, formula, measured, weights);
}

bool approach(const Law& law, const RowFormula& formula, const std::vector<double>& measured, const std::vector<double>& weights,
              double huber, const Bounds& bounds, std::vector<double>& x) {
  const auto n = x.size();
  LeastSquares problem;
  problem.low = bounds.low;
  problem.high = bounds.high;
  for (std::size_t j = 0; j < n; ++j) x[j] = std::clamp(x[j], bounds.low[j], bounds.high[j]);
  problem.start = x;
  problem.prior.assign(n, 0.0);
  problem.prior_sigma.assign(n, std::numeric_limits<double>::infinity());
  problem.weights = weights.empty() ? std::vector<double>(measured.size(), 1.0) : weights;
  problem.noise = problem.huber = huber;
  problem.tolerance = 1e-10;
  constexpr double out = 30.0;  // the residual where the law is not positive: far from any that is
  const auto evaluate = [&](const std::vector<double>& at, Derivatives derivatives) {
    const auto parameters = to_formula(law, at);
    std::vector<double> values;
    Evaluation evaluation;
    evaluation.residuals.reserve(measured.size());
    formula.evaluate(parameters, values, derivatives == Derivatives::yes ? &evaluation.jacobian : nullptr);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool usable = values[i] > 0.0 && std::isfinite(values[i]);
      evaluation.residuals.push_back(usable ? std::log(measured[i]) - std::log(values[i]) : out);
      if (derivatives == Derivatives::no) continue;
      for (std::size_t j = 0; j < n; ++j) {
        double& slope = evaluation.jacobian[i * n + j];
        slope = usable ? -slope / values[i] * (law.parameters[j].scale == Scale::log ? parameters[j] : 1.0) : 0.0;
        if (!std::isfinite(slope)) slope = 0.0;
      }
    }
    return evaluation;
  };
  const auto first = evaluate(x, Derivatives::no).residuals;
  if (std::count(first.begin(), first.end(), out) != 0) return false;
  problem.evaluate = evaluate;
  x = fit(problem).x;
  return true;
}

}  // namespace fitting
