// What a user is told of rows that may not give a law: units, points along runs, rows far off, draws of two minima.
#include "fitting/runs/run_warnings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fitting/fit.h"

namespace fitting {
namespace {

bool says(const std::vector<std::string>& warnings, const std::string& words) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const auto& w) { return w.find(words) != std::string::npos; });
}

double loss(double N, double D) { return 1.8 + 400.0 / std::pow(N, 0.34) + 1500.0 / std::pow(D, 0.37); }

// A grid of sizes and tokens, each times `unit_N` and `unit_D`, with an error of a third of a per cent that alternates.
Rows grid(double step_D, double unit_N = 1.0, double unit_D = 1.0) {
  Rows rows;
  rows.columns.resize(2);
  for (double N = 1e8; N < 4e9; N *= 2.0) {
    for (double D = 1e9; D < 6e10; D *= step_D) {
      rows.columns[0].push_back(N * unit_N);
      rows.columns[1].push_back(D * unit_D);
      rows.measured.push_back(loss(N, D) * (rows.measured.size() % 2 == 0 ? 1.003 : 0.997));
    }
  }
  return rows;
}

TEST(RunWarnings, SayThatNumbersAreSmallForTheirUnit) {
  const auto& law = law_of("chinchilla");
  EXPECT_TRUE(warnings_of_rows(law, grid(2.0)).empty());
  EXPECT_TRUE(says(warnings_of_rows(law, grid(2.0, 1e-6)), "N is at most 3200, expected parameters"));
  EXPECT_TRUE(says(warnings_of_rows(law, grid(2.0, 1.0, 1e-9)), "D is at most 32, expected tokens"));
}

TEST(RunWarnings, SayThatALossIsAPerplexity) {
  auto rows = grid(2.0);
  for (double& L : rows.measured) L = std::exp(L + 1.0);
  EXPECT_TRUE(says(warnings_of_rows(law_of("chinchilla"), rows), "a perplexity?"));
}

TEST(RunWarnings, SayThatRowsArePointsAlongRuns) {
  EXPECT_TRUE(says(warnings_of_rows(law_of("chinchilla"), grid(1.1)), "6 sizes with 43 token counts each"));  // 1 + floor(ln 60 / ln 1.1)
  EXPECT_FALSE(says(warnings_of_rows(law_of("chinchilla"), grid(2.0)), "along runs"));
}

TEST(FitWarnings, NameRowsFarOffAndTheFitWithoutThem) {
  const auto& law = law_of("chinchilla");
  FitOptions options;
  options.starts = 60;
  const auto clean = grid(2.0);
  EXPECT_FALSE(fit(law, clean, options).outliers.has_value());
  auto spoiled = clean;
  spoiled.measured[7] *= 2.0;
  for (std::size_t i = 0; i < spoiled.size(); ++i) options.row_names.push_back("run " + std::to_string(i));
  const auto report = fit(law, spoiled, options);
  ASSERT_TRUE(report.outliers.has_value());
  EXPECT_EQ(report.outliers->rows, std::vector<std::size_t>{7});
  EXPECT_NEAR(report.outliers->residuals.front(), std::log(2.0), 0.02);
  EXPECT_TRUE(says(report.warnings, "1 of 36 rows lie far off the law: run 7 (+"));
  auto without = clean;
  for (auto& column : without.columns) column.erase(column.begin() + 7);
  without.measured.erase(without.measured.begin() + 7);
  const Solver solver(law, without, law.huber);
  EXPECT_LE(solver.objective(report.outliers->parameters), 1.001 * fit(law, without, options).objective);
  EXPECT_GT(solver.objective(report.law.parameters), solver.objective(report.outliers->parameters));
}

// Of half the rows at 1 and half at 2, the median of a draw is either.
TEST(FitWarnings, SayThatDrawsFallIntoTwoGroups) {
  Rows rows;
  rows.columns.resize(1);
  const auto law = law_of_formula("E * N^0", {});
  for (int i = 0; i < 41; ++i) {
    rows.columns[0].push_back(1e9 + i);
    rows.measured.push_back((i % 2 == 0 ? 1.0 : 2.0) * (1.0 + 1e-3 * i / 41.0));
  }
  FitOptions options;
  options.bootstrap = 400;
  EXPECT_TRUE(says(fit(law, rows, options).warnings, "draws of E fall into two groups"));
  for (double& L : rows.measured) L = L > 1.5 ? L / 2.0 : L;
  EXPECT_FALSE(says(fit(law, rows, options).warnings, "two groups"));
}

TEST(FitWarnings, CountSizesThatLieCloseTogether) {
  Rows rows;
  rows.columns.resize(2);
  for (int i = 0; i < 400; ++i) {
    const double N = 1e8 * std::pow(1.01, i), D = 1e9 * std::pow(1.01, (i * 173) % 400);
    rows.columns[0].push_back(N);
    rows.columns[1].push_back(D);
    rows.measured.push_back(loss(N, D));
  }
  FitOptions options;
  options.starts = 20;
  EXPECT_FALSE(says(fit(law_of("chinchilla"), rows, options).warnings, "distinct values"));
}

}  // namespace
}  // namespace fitting
