#include "fitting/runs/best_settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "fitting/fit.h"

namespace fitting {
namespace {

Runs runs_in(const std::string& law, const std::string& text, double near_best) {
  RunOptions options;
  options.near_best = near_best;
  options.reading.wanted = wanted_by(law_of(law));
  options.reading.also = {"N", "D", "L"};
  return runs_of(law_of(law), core::parse_observations(text, "runs.csv", options.reading), options);
}

const std::string sweep =
    "params,tokens,lr,loss\n"
    "1e8,1e10,1e-3,2.501\n"
    "1e8,1e10,4e-3,2.500\n"
    "1e8,1e10,8e-3,2.600\n"
    "1e9,1e10,5e-4,2.200\n"
    "1e9,1e10,1e-2,2.700\n";

TEST(BestSettings, AreMeansOfRunsNearTheLeastLoss) {
  const auto runs = runs_in("step-law-lr", sweep, 0.001);
  ASSERT_EQ(runs.rows.size(), 2u);
  EXPECT_NEAR(runs.rows.measured[0], std::sqrt(1e-3 * 4e-3), 1e-12);
  EXPECT_DOUBLE_EQ(runs.rows.measured[1], 5e-4);
  EXPECT_EQ(runs.observations.rows.front(), "runs.csv line 2 and 1 more");
  ASSERT_EQ(runs.observations.dropped.size(), 3u);  // none of the five is silently gone
  EXPECT_EQ(runs.observations.rows.size(), 2u);
}

TEST(BestSettings, AreTheBestAloneWithoutAMargin) {
  const auto runs = runs_in("step-law-lr", sweep, 0.0);
  ASSERT_EQ(runs.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(runs.rows.measured[0], 4e-3);
}

TEST(BestSettings, AreTheRowsThemselvesWithoutLosses) {
  const auto runs = runs_in("step-law-lr", "params,tokens,lr\n1e8,1e10,1e-3\n1e8,1e10,2e-3\n1e9,1e10,1e-3\n", 0.0025);
  EXPECT_EQ(runs.rows.size(), 3u);
}

// laws.md, 9: averages within 0.25 % give 0.5826 D^0.5684, and of learning rates exponents of -0.84 and 0.25. The batch comes
// from tokens over rounded steps: a part in a thousand.
TEST(BestSettings, GiveTheStepLawOfItsRuns) {
  const auto file = std::filesystem::path(FORETRAIN_SOURCE_DIR) / ".." / "shared" / "scaling" / "data" / "steplaw_dense.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "SKIPPED: no " << file << " here";
  const auto batch = fit(law_of("step-law-batch"), read_runs(law_of("step-law-batch"), {file}, {}).rows, {});
  EXPECT_EQ(batch.rows, 14);
  EXPECT_NEAR(batch.law.parameters[0], 0.5826, 0.005);
  EXPECT_NEAR(batch.law.parameters[1], 0.5684, 0.0005);
  const auto rate = fit(law_of("step-law-lr"), read_runs(law_of("step-law-lr"), {file}, {}).rows, {});
  EXPECT_NEAR(rate.law.parameters[1], -0.84, 0.005);
  EXPECT_NEAR(rate.law.parameters[2], 0.25, 0.005);
}

}  // namespace
}  // namespace fitting
