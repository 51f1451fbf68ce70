#include "fitting/solver/descent.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"

namespace fitting {
namespace {

constexpr int most = 32;  // parameters
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, most, most>;
using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, most, 1>;

constexpr double most_damping = 1e14;

class Descent {
 public:
  Descent(Objective& objective, const Bounds& bounds) : objective_(objective), bounds_(bounds) {}

  bool run(const DescentOptions& options, std::vector<double>& x) {
    double value = objective_.at(x, options.huber);
    if (!std::isfinite(value)) return false;
    double damping = 1e-3;
    objective_.derivatives(gradient_, hessian_);
    for (int i = 0; i < options.steps; ++i) {
      find_free(x);
      if (free_.empty()) return true;
      const auto trial = step(x, damping);
      if (!trial) return true;
      const double reached = objective_.at(*trial, options.huber);
      const double enough = options.tolerance * value;
      if (reached < value) {
        const double gained = value - reached;
        x = *trial;
        value = reached;
        objective_.derivatives(gradient_, hessian_);
        damping = std::max(damping * (gained > 0.5 * predicted_ ? 0.1 : 1.0), 1e-14);
        if (gained <= enough && predicted_ <= 4.0 * enough) return true;
      } else {
        if (predicted_ <= enough) return true;
        damping *= 8.0;
        if (damping > most_damping) return true;
      }
    }
    return false;
  }

 private:
  // Those that are not at a bound that the gradient pushes against.
  void find_free(const std::vector<double>& x) {
    free_.clear();
    for (std::size_t j = 0; j < x.size(); ++j) {
      const bool down = x[j] <= bounds_.low[j] && gradient_[j] > 0.0;
      const bool up = x[j] >= bounds_.high[j] && gradient_[j] < 0.0;
      if (!down && !up) free_.push_back(j);
    }
  }

  // (H + damping D) step = -g, D the size of H's diagonal; more damping until that is positive definite. Nothing where no
  // parameter changes.
  std::optional<std::vector<double>> step(const std::vector<double>& x, double& damping) {
    const auto n = static_cast<Eigen::Index>(free_.size());
    Matrix h = Matrix::Zero(n, n);
    Vector g = Vector::Zero(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto row = free_[static_cast<std::size_t>(i)];
      g(i) = gradient_[row];
      for (Eigen::Index j = 0; j < n; ++j) h(i, j) = hessian_[row * x.size() + free_[static_cast<std::size_t>(j)]];
    }
    const double curvature = h.diagonal().cwiseAbs().maxCoeff();
    // Where no row is within the threshold the objective is linear: steps of about 1 / damping.
    const double scale = std::max(curvature > 0.0 ? curvature * 1e-10 : g.cwiseAbs().maxCoeff(), std::numeric_limits<double>::min());
    for (; damping < most_damping; damping *= 4.0) {
      Matrix damped = h;
      for (Eigen::Index i = 0; i < n; ++i) damped(i, i) += damping * std::max(std::fabs(h(i, i)), scale);
      const Eigen::LLT<Matrix> factors(damped);
      if (factors.info() != Eigen::Success) continue;
      const Vector move = factors.solve(-g);
      if (!move.allFinite()) continue;
      predicted_ = -(g.dot(move) + 0.5 * move.dot(h * move));
      if (predicted_ > 0.0) return moved(x, move);
    }
    return std::nullopt;
  }

  std::optional<std::vector<double>> moved(const std::vector<double>& x, const Vector& move) const {
    auto y = objective_.to(x);
    for (std::size_t i = 0; i < free_.size(); ++i) y[free_[i]] += move(static_cast<Eigen::Index>(i));
    y = objective_.from(y);
    for (std::size_t j = 0; j < y.size(); ++j) y[j] = std::clamp(y[j], bounds_.low[j], bounds_.high[j]);
    if (y == x) return std::nullopt;
    return y;
  }

  Objective& objective_;
  const Bounds& bounds_;
  std::vector<double> gradient_, hessian_;
  std::vector<std::size_t> free_;
  double predicted_ = 0.0;
};

}  // namespace

bool descend(Objective& objective, const Bounds& bounds, const DescentOptions& options, std::vector<double>& x) {
  CORE_ASSERT(bounds.low.size() == x.size() && bounds.high.size() == x.size() && x.size() <= most);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = std::clamp(x[j], bounds.low[j], bounds.high[j]);
  return Descent(objective, bounds).run(options, x);
}

}  // namespace fitting
