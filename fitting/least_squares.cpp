#include "fitting/least_squares.h"

#include <ceres/ceres.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "core/error.h"

namespace fitting {

namespace {

// All residuals are computed together, before Ceres asks for them one by one.
class Evaluated : public ceres::EvaluationCallback {
 public:
  Evaluated(const LeastSquares& problem, const std::vector<double>& x) : problem_(problem), x_(x) {}

  void PrepareForEvaluation(bool derivatives, bool new_point) override {
    if (!new_point && (has_derivatives_ || !derivatives)) return;
    values_ = problem_.evaluate(x_, derivatives ? Derivatives::yes : Derivatives::no);
    has_derivatives_ = derivatives;
    if (derivatives) {
      with_derivatives_ = values_;
      with_derivatives_at_ = x_;
    }
    CORE_ASSERT(values_.residuals.size() == problem_.weights.size());
    CORE_ASSERT(!derivatives || values_.jacobian.size() == x_.size() * problem_.weights.size());
  }

  const Evaluation& values() const { return values_; }

  // With derivatives, at x as it is now: what was computed there, or computed anew.
  Evaluation at_end() const {
    return with_derivatives_at_ == x_ ? with_derivatives_ : problem_.evaluate(x_, Derivatives::yes);
  }

 private:
  const LeastSquares& problem_;
  const std::vector<double>& x_;
  Evaluation values_, with_derivatives_;
  std::vector<double> with_derivatives_at_;
  bool has_derivatives_ = false;
};

// A residual over the noise.
class Residual : public ceres::CostFunction {
 public:
  Residual(const Evaluated& evaluated, std::size_t index, std::size_t parameters, double noise)
      : evaluated_(evaluated), index_(index), parameters_(parameters), noise_(noise) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(parameters));
  }

  bool Evaluate(double const* const*, double* residuals, double** jacobians) const override {
    residuals[0] = evaluated_.values().residuals[index_] / noise_;
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    for (std::size_t j = 0; j < parameters_; ++j)
      jacobians[0][j] = evaluated_.values().jacobian[index_ * parameters_ + j] / noise_;
    return true;
  }

 private:
  const Evaluated& evaluated_;
  std::size_t index_, parameters_;
  double noise_;
};

// (x - prior) / sigma of all parameters.
class Priors : public ceres::CostFunction {
 public:
  explicit Priors(const LeastSquares& problem) : problem_(problem) {
    set_num_residuals(static_cast<int>(problem.start.size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(problem.start.size()));
  }

  bool Evaluate(double const* const* x, double* residuals, double** jacobians) const override {
    const std::size_t n = problem_.start.size();
    for (std::size_t i = 0; i < n; ++i)
      residuals[i] = (x[0][i] - problem_.prior[i]) / problem_.prior_sigma[i];
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    std::fill_n(jacobians[0], n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) jacobians[0][i * n + i] = 1.0 / problem_.prior_sigma[i];
    return true;
  }

 private:
  const LeastSquares& problem_;
};

void check_sizes(const LeastSquares& p) {
  const std::size_t n = p.start.size();
  CORE_ASSERT(p.low.size() == n && p.high.size() == n && p.prior.size() == n &&
              p.prior_sigma.size() == n);
  CORE_ASSERT(p.noise > 0.0 && p.huber > 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    CORE_ASSERT(p.low[i] < p.high[i] && p.low[i] <= p.start[i] && p.start[i] <= p.high[i]);
    CORE_ASSERT(p.prior_sigma[i] > 0.0);
  }
}

std::vector<double> errors_of(const LeastSquares& p, const Evaluation& at) {
  const auto n = static_cast<Eigen::Index>(p.start.size());
  Eigen::MatrixXd information = Eigen::MatrixXd::Zero(n, n);
  double squares = 0.0, weights = 0.0;
  for (std::size_t i = 0; i < p.weights.size(); ++i) {
    const double size = std::abs(at.residuals[i]);
    const double weight = p.weights[i] * (size > p.huber ? p.huber / size : 1.0);
    const double* row = at.jacobian.data() + i * p.start.size();
    const Eigen::Map<const Eigen::VectorXd> gradient(row, n);
    information += weight / (p.noise * p.noise) * gradient * gradient.transpose();
    squares += weight * size * size / (p.noise * p.noise);
    weights += weight;
  }
  const double spread = weights > 0.0 ? std::max(1.0, squares / weights) : 1.0;
  information /= spread;
  for (Eigen::Index j = 0; j < n; ++j) {
    const double sigma = p.prior_sigma[static_cast<std::size_t>(j)];
    information(j, j) += 1.0 / (sigma * sigma);
  }
  const Eigen::MatrixXd inverse = information.ldlt().solve(Eigen::MatrixXd::Identity(n, n));
  std::vector<double> errors;
  for (Eigen::Index j = 0; j < n; ++j) errors.push_back(std::sqrt(inverse(j, j)));
  return errors;
}

}  // namespace

Fit fit(const LeastSquares& problem) {
  check_sizes(problem);
  Fit result;
  result.x = problem.start;
  const std::size_t n = problem.start.size();
  if (n == 0) {
    result.converged = true;
    return result;
  }
  Evaluated evaluated(problem, result.x);
  ceres::Problem::Options options;
  options.evaluation_callback = &evaluated;
  ceres::Problem ceres_problem(options);
  ceres_problem.AddParameterBlock(result.x.data(), static_cast<int>(n));
  for (std::size_t j = 0; j < n; ++j) {
    const auto index = static_cast<int>(j);
    ceres_problem.SetParameterLowerBound(result.x.data(), index, problem.low[j]);
    ceres_problem.SetParameterUpperBound(result.x.data(), index, problem.high[j]);
  }
  // Ceres owns what it is given.
  for (std::size_t i = 0; i < problem.weights.size(); ++i) {
    if (problem.weights[i] == 0.0) continue;
    auto residual = std::make_unique<Residual>(evaluated, i, n, problem.noise);
    auto huber = std::make_unique<ceres::HuberLoss>(problem.huber / problem.noise);
    auto loss = std::make_unique<ceres::ScaledLoss>(
        huber.release(), problem.weights[i], ceres::TAKE_OWNERSHIP);
    ceres_problem.AddResidualBlock(residual.release(), loss.release(), result.x.data());
  }
  auto priors = std::make_unique<Priors>(problem);
  ceres_problem.AddResidualBlock(priors.release(), nullptr, result.x.data());

  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.num_threads = 1;
  solver.max_num_iterations = 200;  // models with kinks, as of tiles and waves, take small steps
  solver.initial_trust_region_radius =
      1e8;  // the first step is Gauss-Newton's: models are nearly linear
  solver.function_tolerance = problem.tolerance;
  solver.parameter_tolerance = 1e-6;
  solver.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &ceres_problem, &summary);
  result.converged = summary.termination_type == ceres::CONVERGENCE;
  result.message = summary.message;
  result.iterations = static_cast<int>(summary.iterations.size());
  result.standard_errors = errors_of(problem, evaluated.at_end());
  return result;
}

}  // namespace fitting
