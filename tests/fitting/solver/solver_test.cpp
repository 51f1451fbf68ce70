#include "fitting/solver/solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fitting/fitted_law.h"
#include "fitting/solver/row_fit.h"
#include "tests/fitting/runs_data.h"

namespace fitting {
namespace {

// Rows of L = E + A / N^alpha + B / D^beta on a grid of sizes and tokens.
Rows grid(const std::vector<double>& parameters, double noise = 0.0) {
  Rows rows;
  rows.columns.resize(2);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0.0, noise);
  const LawFunction law(law_of("chinchilla"));
  for (double N = 1e7; N < 2e10; N *= 2.7) {
    for (double D = 3e8; D < 1e12; D *= 3.1) {
      rows.columns[0].push_back(N);
      rows.columns[1].push_back(D);
      rows.measured.push_back(law.value(parameters, {N, D}) * std::exp(noise > 0.0 ? normal(random) : 0.0));
    }
  }
  return rows;
}

const std::vector<double> truth = {400.0, 1500.0, 1.8, 0.34, 0.37};  // A B E alpha beta

// S as laws.md writes it, term by term.
double slow_objective(const Rows& rows, const std::vector<double>& p, const std::vector<double>& weights, double huber) {
  double sum = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double law = p[2] + p[0] / std::pow(rows.columns[0][i], p[3]) + p[1] / std::pow(rows.columns[1][i], p[4]);
    const double r = std::fabs(std::log(rows.measured[i]) - std::log(law));
    sum += (weights.empty() ? 1.0 : weights[i]) * (r <= huber ? r * r / 2.0 : huber * (r - huber / 2.0));
  }
  return sum;
}

TEST(Solver, FindsWhatMadeRowsWithoutNoise) {
  const Solver solver(law_of("chinchilla"), grid(truth), 1e-3);
  ASSERT_TRUE(solver.batched());
  const auto basins = solver.from_starts(starts_of(solver.law(), 200));
  ASSERT_FALSE(basins.empty());
  for (std::size_t j = 0; j < truth.size(); ++j) EXPECT_NEAR(basins.front().minimum.parameters[j], truth[j], 1e-6 * truth[j]);
  EXPECT_LT(basins.front().minimum.objective, 1e-18);
}

TEST(Solver, SumsHubersLossesAsWritten) {
  const auto rows = grid(truth, 0.01);
  const Solver solver(law_of("chinchilla"), rows, 1e-3);
  std::vector<double> weights(rows.size(), 1.0);
  for (std::size_t i = 0; i < weights.size(); i += 3) weights[i] = static_cast<double>(i % 5);
  for (const auto& p : {truth, std::vector<double>{900.0, 3.0, 0.1, 0.5, 0.01}, std::vector<double>{1e-5, 1e9, 3.0, 0.2, 1.5}}) {
    EXPECT_NEAR(solver.objective(p), slow_objective(rows, p, {}, 1e-3), 1e-12 * slow_objective(rows, p, {}, 1e-3));
    EXPECT_NEAR(solver.objective(p, weights), slow_objective(rows, p, weights, 1e-3), 1e-12 * slow_objective(rows, p, weights, 1e-3));
  }
}

// Gradient and Hessian of the kernel against differences of the sum and of the gradient.
TEST(Solver, KernelDifferentiatesItsSum) {
  const auto rows = grid(truth, 0.01);
  const Law& law = law_of("chinchilla");
  const auto model = log_sum_of(law, rows);
  ASSERT_TRUE(model.has_value());
  const auto objective = log_sum_objective(*model, {});
  const auto at = objective->to(to_search(law, {500.0, 1000.0, 1.7, 0.35, 0.36}));
  std::vector<double> gradient, hessian, above, below, ignored;
  for (const double huber : {1.0, 1e-2}) {
    const auto value = [&](std::vector<double> y, std::vector<double>& g, std::vector<double>& h) {
      const double s = objective->at(objective->from(y), huber);
      objective->derivatives(g, h);
      return s;
    };
    value(at, gradient, hessian);
    for (std::size_t j = 0; j < at.size(); ++j) {
      auto high = at, low = at;
      const double step = 1e-6;
      high[j] += step;
      low[j] -= step;
      const double up = value(high, above, ignored), down = value(low, below, ignored);
      EXPECT_NEAR(gradient[j], (up - down) / (2.0 * step), 1e-6 * (1.0 + std::fabs(gradient[j])));
      for (std::size_t i = 0; i < at.size(); ++i) {
        EXPECT_NEAR(hessian[i * at.size() + j], (above[i] - below[i]) / (2.0 * step), 2e-3 * (1.0 + std::fabs(hessian[i * at.size() + j])));
      }
    }
  }
}

TEST(Solver, AgreesWithCeresOnPublishedRows) {
  const Law& law = law_of("chinchilla");
  const auto runs = runs_of_data(law, "chinchilla-epoch.csv", 5);
  ASSERT_EQ(runs.rows.size(), 240u);
  const Solver batched(law, runs.rows, 1e-3);
  Solver general(law, runs.rows, 1e-3);
  general.use_general();
  const auto starts = starts_of(law, 40);
  const auto own = batched.from_starts(starts).front().minimum;
  const auto ceres = general.from_starts(starts).front().minimum;
  EXPECT_NEAR(own.objective, ceres.objective, 1e-10 * own.objective);
  for (std::size_t j = 0; j < own.parameters.size(); ++j) EXPECT_NEAR(own.parameters[j], ceres.parameters[j], 1e-5 * own.parameters[j]);
}

// Besiroglu et al. 2024: 240 points; the minimum below the one they printed, from the whole grid of starts and from 100.
TEST(Solver, ReachesTheMinimumOfChinchillasPoints) {
  const Law& law = law_of("chinchilla");
  const std::vector<double> expected = {477.826, 2143.42, 1.817218, 0.347310, 0.367172};
  const auto fitted = runs_of_data(law, "chinchilla-epoch.csv", 5).rows;
  for (const std::int64_t starts : {4500, 100}) {
    const auto best = Solver(law, fitted, 1e-3).from_starts(starts_of(law, starts)).front().minimum;
    EXPECT_LE(best.objective, 0.0010182740179);
    for (std::size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(best.parameters[j], expected[j], 1e-4 * expected[j]);
  }
  const auto all = Solver(law, runs_of_data(law, "chinchilla-epoch.csv").rows, 1e-3).from_starts(starts_of(law, 4500)).front().minimum;
  EXPECT_LE(all.objective, 0.00182601052308);
}

TEST(Solver, GridOfStartsIsThePapers) { EXPECT_EQ(starts_of(law_of("chinchilla"), 1 << 20).size(), 4500u); }

TEST(Solver, SeesLogSumsInAnyWayOfWritingThem) {
  auto law = law_of("chinchilla");
  const auto rows = grid(truth);
  for (const auto* formula : {"A * N^-alpha + E + B * D^(-beta)", "B / D^beta + (A / N^alpha + E)", "A * exp(-alpha * log(N)) + B / pow(D, beta) + E"}) {
    law.formula = formula;
    const auto model = log_sum_of(law, rows);
    ASSERT_TRUE(model.has_value()) << formula;
    EXPECT_NEAR(log_sum_objective(*model, {})->at(to_search(law, truth), 1e-3), 0.0, 1e-20) << formula;
  }
  law.formula = "E + (A / N^alpha + B / D^beta)^0.9";
  EXPECT_FALSE(log_sum_of(law, rows).has_value());
}

TEST(Solver, DoesNotDependOnRowsOfNoWeight) {
  auto rows = grid(truth, 0.01);
  const Solver without(law_of("chinchilla"), rows, 1e-3);
  std::vector<double> weights(rows.size(), 1.0);
  for (auto& column : rows.columns) column.push_back(1e9);
  rows.measured.push_back(99.0);
  weights.push_back(0.0);
  const Solver with(law_of("chinchilla"), rows, 1e-3);
  const auto starts = starts_of(with.law(), 50);
  EXPECT_EQ(with.from_starts(starts, weights).front().minimum.parameters, without.from_starts(starts).front().minimum.parameters);
}

}  // namespace
}  // namespace fitting
