#include "fitting/solver/log_sum.h"

#include <algorithm>

#include "fitting/solver/log_sum_kernel.h"

namespace fitting {
namespace {

// Coefficients are shifted so that columns have mean 0: without it E, A and alpha are nearly collinear.
class LogSumObjective : public Objective {
 public:
  LogSumObjective(const LogSum& model, const std::vector<double>& weights, const std::vector<std::size_t>& rows)
      : parameters_(model.parameters), kernel_(model, weights, rows) {}

  double at(const std::vector<double>& x, double huber) override {
    ++evaluations;
    return kernel_.evaluate(to(x), huber);
  }

  void derivatives(std::vector<double>& gradient, std::vector<double>& hessian) override {
    gradient.assign(parameters_, 0.0);
    hessian.assign(parameters_ * parameters_, 0.0);
    for (int e = 0; e < kernel_.entries(); ++e) {
      const auto i = kernel_.parameter(e);
      gradient[i] += kernel_.gradient(e);
      for (int f = 0; f < kernel_.entries(); ++f) {
        hessian[i * parameters_ + kernel_.parameter(f)] += kernel_.hessian(std::max(e, f), std::min(e, f));
      }
    }
  }

  std::vector<double> to(const std::vector<double>& x) const override { return shift(x, 1.0); }
  std::vector<double> from(const std::vector<double>& y) const override { return shift(y, -1.0); }

 private:
  // c' = c + sum theta mean(x), or back.
  std::vector<double> shift(std::vector<double> x, double sign) const {
    for (int e = 0; e < kernel_.entries(); ++e) {
      if (kernel_.mean(e) != 0.0) x[kernel_.coefficient(e)] += sign * kernel_.mean(e) * x[kernel_.parameter(e)];
    }
    return x;
  }

  std::size_t parameters_;
  LogSumKernel kernel_;
};

}  // namespace

std::unique_ptr<Objective> log_sum_objective(const LogSum& model, const std::vector<double>& weights, std::size_t every) {
  std::vector<std::size_t> rows;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < model.target.size(); ++i) {
    if ((weights.empty() || weights[i] != 0.0) && seen++ % every == 0) rows.push_back(i);
  }
  return std::make_unique<LogSumObjective>(model, weights, rows);
}

}  // namespace fitting
