#include "fitting/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using fitting::Derivatives;
using fitting::Evaluation;
using fitting::LeastSquares;

// r_i = x - d_i: one parameter, many measurements of it.
LeastSquares mean_of(std::vector<double> data, double prior_sigma) {
  LeastSquares p;
  p.start = {0.0};
  p.low = {-10.0};
  p.high = {10.0};
  p.prior = {0.0};
  p.prior_sigma = {prior_sigma};
  p.weights.assign(data.size(), 1.0);
  p.huber = 100.0;
  p.evaluate = [data](const std::vector<double>& x, Derivatives) {
    Evaluation e;
    for (const double d : data) e.residuals.push_back(x[0] - d);
    e.jacobian.assign(data.size(), 1.0);
    return e;
  };
  return p;
}

TEST(LeastSquares, GivesTheMeanWhereThePriorIsWide) {
  const auto fit = fitting::fit(mean_of({1.0, 2.0, 3.0, 6.0}, 1e6));
  EXPECT_TRUE(fit.converged);
  EXPECT_NEAR(fit.x[0], 3.0, 1e-4);
}

// A normal prior of variance v around 0 and n measurements of variance 1: n m / (n + 1 / v), with
// variance 1 / (n + 1 / v).
TEST(LeastSquares, WeighsAPriorAgainstMeasurements) {
  const auto fit = fitting::fit(mean_of({0.5, 0.5, 0.5, 0.5}, 0.5));
  EXPECT_NEAR(fit.x[0], 4.0 * 0.5 / (4.0 + 4.0), 1e-4);
  EXPECT_NEAR(fit.standard_errors[0], std::sqrt(1.0 / (4.0 + 4.0)), 1e-6);
}

// With residuals of 0 and 1 beyond 0.25, Huber's pull is 0.25 each: n x = 0.25 for n at 0.
TEST(LeastSquares, LetsAnOutlierPullNoHarderThanHuber) {
  auto p = mean_of({0.0, 0.0, 0.0, 0.0, 0.0, 9.0}, 1e6);
  p.huber = 0.25;
  EXPECT_NEAR(fitting::fit(p).x[0], 0.25 / 5.0, 1e-3);
}

TEST(LeastSquares, CountsWeights) {
  auto p = mean_of({0.0, 4.0, 100.0}, 1e6);
  p.huber = 1e4;
  p.weights = {3.0, 1.0, 0.0};
  EXPECT_NEAR(fitting::fit(p).x[0], 1.0, 1e-4);
}

TEST(LeastSquares, StaysWithinBounds) {
  auto p = mean_of({5.0}, 1e6);
  p.high = {2.0};
  EXPECT_DOUBLE_EQ(fitting::fit(p).x[0], 2.0);
}

// y = a exp(b t), without noise.
TEST(LeastSquares, FindsAnExponential) {
  LeastSquares p;
  p.start = {1.0, 0.0};
  p.low = {0.0, -5.0};
  p.high = {10.0, 5.0};
  p.prior = p.start;
  p.prior_sigma = {1e6, 1e6};
  p.weights.assign(8, 1.0);
  p.huber = 1e6;
  p.evaluate = [](const std::vector<double>& x, Derivatives) {
    Evaluation e;
    for (int i = 0; i < 8; ++i) {
      const double t = 0.2 * i, model = x[0] * std::exp(x[1] * t);
      e.residuals.push_back(model - 2.5 * std::exp(-0.7 * t));
      e.jacobian.push_back(std::exp(x[1] * t));
      e.jacobian.push_back(t * model);
    }
    return e;
  };
  const auto fit = fitting::fit(p);
  EXPECT_TRUE(fit.converged);
  EXPECT_NEAR(fit.x[0], 2.5, 1e-4);
  EXPECT_NEAR(fit.x[1], -0.7, 1e-4);
}

TEST(LeastSquares, DoesNothingWithoutParameters) {
  LeastSquares p;
  p.evaluate = [](const std::vector<double>&, Derivatives) { return Evaluation{}; };
  EXPECT_TRUE(fitting::fit(p).converged);
}

}  // namespace
