#include "fitting/solver/projection.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fitting/solver/solver.h"

namespace fitting {
namespace {

struct Runs {
  std::vector<double> N, D, L;
};

// Without noise, on sizes and budgets that are not centred.
Runs runs_of(double E, double A, double B, double alpha, double beta) {
  Runs runs;
  for (const double C : {1e19, 1e20, 1e21}) {
    for (const double N : {5e7, 1.3e8, 4e8, 1e9, 2.5e9, 7e9}) {
      runs.N.push_back(N), runs.D.push_back(C / (6.0 * N));
      runs.L.push_back(E + A / std::pow(N, alpha) + B / std::pow(runs.D.back(), beta));
    }
  }
  return runs;
}

TEST(Projection, FindsTheConstantsWithoutNoise) {
  const auto runs = runs_of(1.7, 400.0, 1200.0, 0.35, 0.28);
  const auto found = project(runs.N, runs.D, runs.L);
  EXPECT_TRUE(found.converged);
  EXPECT_NEAR(found.alpha, 0.35, 1e-7);
  EXPECT_NEAR(found.beta, 0.28, 1e-7);
  EXPECT_NEAR(found.E, 1.7, 1e-6);
  EXPECT_NEAR(found.A / 400.0, 1.0, 1e-5);
  EXPECT_NEAR(found.B / 1200.0, 1.0, 1e-5);
  EXPECT_LT(found.squares, 1e-18);
}

// The solver of all five at once, on the same rows.
TEST(Projection, AgreesWithTheSolverWithoutNoise) {
  const auto runs = runs_of(1.9, 500.0, 2000.0, 0.34, 0.36);
  const Solver solver(law_of("chinchilla"), {{runs.N, runs.D}, runs.L}, 1e-3);
  const auto basins = solver.from_starts(starts_of(solver.law(), 100));
  ASSERT_FALSE(basins.empty());
  const auto& five = basins.front().minimum.parameters;  // A, B, E, alpha, beta
  const auto found = project(runs.N, runs.D, runs.L);
  EXPECT_NEAR(found.alpha, five[3], 1e-5);
  EXPECT_NEAR(found.beta, five[4], 1e-5);
  EXPECT_NEAR(found.E, five[2], 1e-5);
}

// A term that the losses do not have has no part, rather than a negative one: losses that grow with N.
TEST(Projection, KeepsTermsFromBeingNegative) {
  auto runs = runs_of(1.7, 0.0, 1200.0, 0.3, 0.3);
  for (std::size_t i = 0; i < runs.N.size(); ++i) runs.L[i] += 1e-3 * std::log(runs.N[i]);
  const auto found = project(runs.N, runs.D, runs.L);
  EXPECT_EQ(found.A, 0.0);
  EXPECT_GE(found.B, 0.0);
  EXPECT_GE(found.E, 0.0);
  EXPECT_TRUE(std::isfinite(found.squares));
}

// A weight of two is the row twice.
TEST(Projection, CountsARowOfWeightTwoTwice) {
  auto runs = runs_of(1.7, 400.0, 1200.0, 0.35, 0.28);
  for (std::size_t i = 0; i < runs.L.size(); ++i) runs.L[i] *= 1.0 + 0.004 * std::sin(7.0 * static_cast<double>(i));
  std::vector<double> weights(runs.L.size(), 1.0);
  weights[4] = 2.0;
  const auto weighted = project(runs.N, runs.D, runs.L, weights);
  runs.N.push_back(runs.N[4]), runs.D.push_back(runs.D[4]), runs.L.push_back(runs.L[4]);
  const auto twice = project(runs.N, runs.D, runs.L);
  EXPECT_NEAR(weighted.squares / twice.squares, 1.0, 1e-9);
  EXPECT_NEAR(weighted.alpha, twice.alpha, 1e-5);
  EXPECT_NEAR(weighted.beta, twice.beta, 1e-5);
}

// At a minimum no nearby exponents do better.
TEST(Projection, IsAMinimum) {
  auto runs = runs_of(1.7, 400.0, 1200.0, 0.35, 0.28);
  for (std::size_t i = 0; i < runs.L.size(); ++i) runs.L[i] *= 1.0 + 0.004 * std::sin(7.0 * static_cast<double>(i));
  const auto best = project(runs.N, runs.D, runs.L);
  const auto squares = [&](double alpha, double beta) {
    double sum = 0.0;
    for (std::size_t i = 0; i < runs.L.size(); ++i) {
      sum += std::pow(runs.L[i] - best.E - best.A * std::pow(runs.N[i], -alpha) - best.B * std::pow(runs.D[i], -beta), 2);
    }
    return sum;
  };
  EXPECT_NEAR(squares(best.alpha, best.beta) / best.squares, 1.0, 1e-9);
  for (const double factor : {0.999, 1.001}) {
    EXPECT_GT(squares(best.alpha * factor, best.beta), best.squares);
    EXPECT_GT(squares(best.alpha, best.beta * factor), best.squares);
  }
}

}  // namespace
}  // namespace fitting
