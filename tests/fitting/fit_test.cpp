#include "fitting/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.h"
#include "tests/fitting/runs_data.h"

namespace fitting {
namespace {

const Estimate& estimate(const std::vector<Estimate>& estimates, const std::string& name) {
  return *std::find_if(estimates.begin(), estimates.end(), [&](const auto& e) { return e.name == name; });
}

bool warns(const FitReport& report, const std::string& words) {
  return std::any_of(report.warnings.begin(), report.warnings.end(), [&](const auto& w) { return w.find(words) != std::string::npos; });
}

// Rows of Chinchilla's form over given points, with noise.
Rows rows_at(const std::vector<std::pair<double, double>>& points, double noise, std::uint64_t seed) {
  Rows rows;
  rows.columns.resize(2);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.0, noise);
  for (const auto& [N, D] : points) {
    rows.columns[0].push_back(N);
    rows.columns[1].push_back(D);
    rows.measured.push_back((1.8 + 400.0 / std::pow(N, 0.34) + 1500.0 / std::pow(D, 0.37)) * std::exp(normal(random)));
  }
  return rows;
}

std::vector<std::pair<double, double>> grid() {
  std::vector<std::pair<double, double>> points;
  for (double N = 2e7; N < 1e10; N *= 2.0) {
    for (double D = 5e8; D < 5e11; D *= 2.5) points.emplace_back(N, D);
  }
  return points;
}

// The intervals of Besiroglu et al. 2024 (4,000 bootstraps, 95 %): within 5 % for each seed, 10 % for B.
TEST(Fit, BootstrapsToThePublishedIntervals) {
  const Law& law = law_of("chinchilla");
  const auto rows = runs_of_data(law, "chinchilla-epoch.csv", 5).rows;
  const std::vector<std::pair<std::string, Interval>> published = {
      {"A", {285.2, 743.6}}, {"B", {1042.0, 5810.0}}, {"E", {1.769, 1.871}}, {"alpha", {0.317, 0.373}}, {"beta", {0.331, 0.415}}};
  for (const std::uint64_t seed : {1, 2, 3}) {
    FitOptions options;
    options.starts = 100;
    options.bootstrap = 4000;
    options.seed = seed;
    const auto report = fit(law, rows, options);
    EXPECT_EQ(report.draws_failed, 0);
    for (const auto& [name, interval] : published) {
      const double within = name == "B" ? 0.10 : 0.05;
      const auto& found = estimate(report.parameters, name).interval;
      ASSERT_TRUE(found.has_value());
      EXPECT_NEAR(found->low, interval.low, within * interval.low) << name << " seed " << seed;
      EXPECT_NEAR(found->high, interval.high, within * interval.high) << name << " seed " << seed;
    }
  }
}

TEST(Fit, IntervalsHoldTheTruthAboutAsOftenAsTheySay) {
  int held = 0;
  constexpr int trials = 60;
  for (int trial = 0; trial < trials; ++trial) {
    FitOptions options;
    options.starts = 20;
    options.bootstrap = 200;
    options.seed = static_cast<std::uint64_t>(trial);
    const auto report = fit(law_of("chinchilla"), rows_at(grid(), 0.005, static_cast<std::uint64_t>(100 + trial)), options);
    const auto& alpha = *estimate(report.parameters, "alpha").interval;
    held += alpha.low <= 0.34 && 0.34 <= alpha.high ? 1 : 0;
  }
  // Of 60 trials at 95 %, fewer than 51 happen once in ten thousand.
  EXPECT_GE(held, 51);
}

TEST(Fit, ResamplesResidualsToo) {
  FitOptions options;
  options.starts = 20;
  options.bootstrap = 300;
  options.resample = Resample::residuals;
  const auto report = fit(law_of("chinchilla"), rows_at(grid(), 0.005, 5), options);
  const auto& alpha = *estimate(report.parameters, "alpha").interval;
  EXPECT_LT(alpha.low, report.law.parameters[3]);
  EXPECT_GT(alpha.high, report.law.parameters[3]);
  EXPECT_LT(alpha.high - alpha.low, 0.1);
}

TEST(Fit, IsTheSameForAnyRepeat) {
  FitOptions options;
  options.starts = 50;
  options.bootstrap = 50;
  const auto rows = rows_at(grid(), 0.01, 3);
  const auto first = fit(law_of("chinchilla"), rows, options), second = fit(law_of("chinchilla"), rows, options);
  EXPECT_EQ(first.law.parameters, second.law.parameters);
  EXPECT_EQ(first.law.draws, second.law.draws);
}

TEST(Fit, HoldsAndTiesParameters) {
  FitOptions options;
  options.starts = 100;
  options.fixed = {{"E", 1.8}};
  options.tied = {{"beta", "alpha"}};
  const auto report = fit(law_of("chinchilla"), rows_at(grid(), 0.0, 1), options);
  EXPECT_EQ(report.law.parameters[2], 1.8);
  EXPECT_EQ(report.law.parameters[3], report.law.parameters[4]);
  EXPECT_TRUE(estimate(report.parameters, "E").fixed);
  options.fixed = {{"F", 1.0}};
  EXPECT_THROW(fit(law_of("chinchilla"), rows_at(grid(), 0.0, 1), options), core::InputError);
}

TEST(Fit, WarnsOfOneRatioOfTokensToParameters) {
  std::vector<std::pair<double, double>> ray;
  for (double N = 1e8; N < 1e11; N *= 1.5) ray.emplace_back(N, 20.0 * N);
  FitOptions options;
  options.starts = 100;
  EXPECT_TRUE(warns(fit(law_of("chinchilla"), rows_at(ray, 0.003, 2), options), "tokens a parameter"));
  EXPECT_FALSE(warns(fit(law_of("chinchilla"), rows_at(grid(), 0.003, 2), options), "tokens a parameter"));
}

TEST(Fit, WarnsOfTooFewSizes) {
  std::vector<std::pair<double, double>> two;
  for (double D = 1e9; D < 1e11; D *= 1.3) {
    two.emplace_back(1e8, D);
    two.emplace_back(1e9, D);
  }
  FitOptions options;
  options.starts = 100;
  EXPECT_TRUE(warns(fit(law_of("chinchilla"), rows_at(two, 0.003, 2), options), "only 2 distinct values of N"));
}

TEST(Fit, RefusesFewerRowsThanParameters) {
  EXPECT_THROW(fit(law_of("chinchilla"), rows_at({{1e8, 1e9}, {2e8, 2e9}, {4e8, 2e9}}, 0.0, 1), {}), core::InputError);
}

// Muennighoff et al. 2023: their minimum is one of several, and not the lowest.
TEST(Fit, ListsAllMinimaOfDataConstrainedRuns) {
  const auto published = fitted_law("data-constrained-muennighoff");
  const auto rows = runs_of_data(published.law, "datablations-182.csv").rows;
  ASSERT_EQ(rows.size(), 182u);
  FitOptions options;
  for (std::size_t j = 0; j < 5; ++j) options.fixed[published.law.parameters[j].name] = published.parameters[j];
  options.compare.emplace_back("published", published.parameters);
  const auto report = fit(published.law, rows, options);
  ASSERT_EQ(report.compared.size(), 1u);
  EXPECT_NEAR(report.compared.front().second, 0.01582593526, 1e-10);
  EXPECT_LE(report.objective, 0.0158046626);
  EXPECT_NEAR(report.law.parameters[5], 95.365, 0.01);
  EXPECT_NEAR(report.law.parameters[6], 1.7059, 0.001);
  const auto local = std::any_of(report.minima.begin(), report.minima.end(), [](const auto& basin) {
    return std::fabs(basin.minimum.parameters[5] - 15.39) < 0.1 && std::fabs(basin.minimum.parameters[6] - 5.31) < 0.03;
  });
  EXPECT_TRUE(local);
  EXPECT_TRUE(warns(report, "minima within"));
}

// data/runs/README.md has the truth; noise of 0.002.
TEST(Fit, RecoversThePrecisionFormOfAMadeUpSweep) {
  const Law& law = law_of("kumar-plain");
  FitOptions options;
  options.starts = 16;
  const auto report = fit(law, runs_of_data(law, "synthetic-kumar.csv").rows, options);
  for (const auto& [name, value] : std::vector<std::pair<std::string, double>>{
           {"E", 2.55}, {"alpha", 0.40}, {"beta", 0.36}, {"gamma_w", 2.6}, {"gamma_a", 2.2}, {"gamma_kv", 0.95}}) {
    EXPECT_NEAR(estimate(report.parameters, name).value, value, 0.05 * value) << name;
  }
}

TEST(Fit, FitsAFormulaOfTheUsersOwn) {
  const auto law = law_of_formula("E + A / N^alpha + B / D^beta", {});
  ASSERT_EQ(law.parameters.size(), 5u);
  FitOptions options;
  options.starts = 300;
  const auto report = fit(law, rows_at(grid(), 0.0, 1), options);
  EXPECT_TRUE(report.batched);
  EXPECT_NEAR(estimate(report.parameters, "A").value, 400.0, 0.01);
  EXPECT_NEAR(estimate(report.parameters, "beta").value, 0.37, 1e-6);
}

}  // namespace
}  // namespace fitting
