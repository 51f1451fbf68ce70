#include "planner/calibrate/intervals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "simulator/check/summary.h"

namespace {

using planner::ResidualRow;

planner::IntervalRules shipped_rules() {
  return planner::read_interval_rules(core::data_dir() / "calibration" / "intervals.json");
}
planner::CalibrationSpec shipped_spec() {
  return planner::read_calibration(core::data_dir() / "calibration" / "parameters.json");
}

ResidualRow row_of(const std::string& source, double residual, bool experts = false) {
  static int next = 0;
  ResidualRow row;
  row.id = row.configuration = std::to_string(next++);
  row.source = source, row.gpu = "h100-sxm", row.architecture = "hopper";
  row.runs = {experts, "Megatron-Core", true};
  row.residual = residual, row.weight = 1.0;
  return row;
}

// Sources of a known spread: between them Student's t with 4 degrees of freedom times `between`.
std::vector<ResidualRow> made_rows(double between, double within, int sources, unsigned seed) {
  std::mt19937 random(seed);
  std::student_t_distribution<double> student(4.0);
  std::normal_distribution<double> normal;
  std::vector<ResidualRow> rows;
  for (int s = 0; s < sources; ++s) {
    const double of_source = between * student(random);
    for (int i = 0; i < 9; ++i) rows.push_back(row_of("s" + std::to_string(s), of_source + within * normal(random)));
  }
  return rows;
}

TEST(Intervals, CoverLeftOutRowsOfAKnownSpreadAsOftenAsTheySay) {
  std::size_t rows = 0, covered = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const auto made = made_rows(0.1, 0.05, 40, seed);
    const auto left = planner::coverage_left_out(made, shipped_rules(), shipped_spec(), planner::LeftOut::source);
    rows += left.back().rows, covered += left.back().covered;
  }
  EXPECT_EQ(rows, 6U * 40 * 9);
  // The centre is clamped to 1 at neither end here. 240 sources: standard error of a share of 0.9 about 2 %.
  EXPECT_NEAR(static_cast<double>(covered) / static_cast<double>(rows), 0.9, 0.045);
}

TEST(Intervals, AfterOneRunCoverPairsOfALeftOutSource) {
  const auto made = made_rows(0.2, 0.05, 40, 3);
  const auto left = planner::coverage_left_out(made, shipped_rules(), shipped_spec(), planner::LeftOut::source);
  EXPECT_NEAR(left.back().pair_share(), 0.9, 0.03);
  // Medians of |values| of a normal distribution: 0.674 times root 2 times 0.05 after a run, more before it.
  EXPECT_NEAR(simulator::quantile(left.back().errors_after, 0.5), 0.674 * std::sqrt(2.0) * 0.05, 0.005);
  EXPECT_GT(simulator::quantile(left.back().errors, 0.5), simulator::quantile(left.back().errors_after, 0.5));
  // |difference| of two normal values: 1.645 times root 2 times 0.05.
  const auto u = planner::intervals_of(made, shipped_rules(), shipped_spec());
  EXPECT_NEAR(u.classes.front().after_one_run, 1.645 * std::sqrt(2.0) * 0.05, 0.01);
}

TEST(Intervals, WidenWithTheSpreadOfSourcesAndHoldThePrediction) {
  const auto width = [](double between) {
    const auto& band = planner::intervals_of(made_rows(between, 0.05, 20, 5), shipped_rules(), shipped_spec()).classes.back();
    EXPECT_LE(band.low, 1.0);
    EXPECT_GE(band.high, 1.0);
    return std::log(band.high / band.low);
  };
  EXPECT_LT(width(0.05), width(0.1));
  EXPECT_LT(width(0.1), width(0.3));
}

TEST(Intervals, DrawAClassOfOneSourceToTheWiderClass) {
  auto rows = made_rows(0.05, 0.02, 12, 9);
  for (int i = 0; i < 9; ++i) rows.push_back(row_of("alone", 0.5 + 0.01 * i, true));
  const auto u = planner::intervals_of(rows, shipped_rules(), shipped_spec());
  const auto& band = u.narrowest({true, "Megatron-Core", true});
  ASSERT_TRUE(band.runs.experts.value_or(false));
  EXPECT_EQ(band.sources, 1);
  EXPECT_GT(std::log(band.high), 0.5);  // it holds what was seen
  EXPECT_LT(band.low, 1.0);             // and what the wider class has
}

TEST(Intervals, WidenWhereNoRunOnTheArchitectureWasMeasuredAndSaySo) {
  const auto u = planner::intervals_of(made_rows(0.1, 0.05, 12, 2), shipped_rules(), shipped_spec());
  const simulator::RunClass run{false, "Megatron-Core", true};
  const auto seen = simulator::band_of(u, run, "hopper"), unseen = simulator::band_of(u, run, "tpu");
  EXPECT_NEAR(std::log(unseen.high), u.unmeasured_widening * std::log(seen.high), 1e-12);
  EXPECT_NEAR(std::log(unseen.low), u.unmeasured_widening * std::log(seen.low), 1e-12);
  EXPECT_EQ(seen.because.find("no run on"), std::string::npos);
  EXPECT_NE(unseen.because.find("no run on tpu has been measured"), std::string::npos);
}

TEST(Intervals, ReadBackAsTheyWereWritten) {
  const auto made = planner::intervals_of(made_rows(0.1, 0.05, 12, 2), shipped_rules(), shipped_spec());
  const auto file = std::filesystem::path(testing::TempDir()) / "uncertainty_test.json";
  std::ofstream(file) << simulator::to_json(made);
  EXPECT_EQ(simulator::to_json(simulator::read_uncertainty(file)), simulator::to_json(made));
  std::filesystem::remove(file);
}

TEST(Intervals, RefuseATableWithoutAClassOfAllRuns) {
  const auto file = std::filesystem::path(testing::TempDir()) / "uncertainty_bad.json";
  std::ofstream(file)
      << R"({"title": "", "command": "", "share": 0.9, "software": [], "architectures": [], "after_other_run": {},
    "unmeasured_widening": {"value": 1, "source": "s", "checked": "estimate"}, "classes": []})";
  try {
    simulator::read_uncertainty(file);
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("all runs as the first class"), std::string::npos);
  }
  std::filesystem::remove(file);
}

// The project's own measurements: rows that a fit or a table saw, whose sources are left out of the intervals alone.
TEST(Intervals, CoverSourcesLeftOutOfMeasuredRuns) {
  const auto folder = std::filesystem::path(FORETRAIN_SOURCE_DIR) / ".." / "shared" / "measured";
  if (!std::filesystem::exists(folder / "training_runs.csv")) GTEST_SKIP() << "SKIPPED: no " << folder << " here";
  std::vector<core::MeasuredTable> tables;
  for (const auto* name : {"training_runs.csv", "bulk/dgxc_full.csv", "bulk/megatron_bridge_all_releases.csv",
                           "bulk/mosaicml_mpt.csv", "bulk/vtrain_multi_node.csv"})
    tables.push_back(core::read_measured_table(folder / name));
  const auto spec = shipped_spec();
  const auto rules = shipped_rules();
  const auto rows = planner::residual_rows(planner::calibration_rows(tables, spec), rules);
  const auto left = planner::coverage_left_out(rows, rules, spec, planner::LeftOut::source);
  for (const auto& c : left)
    std::printf("%-14s %4zu rows, %5.1f %% inside; of %4zu pairs %5.1f %%\n", c.left_out.c_str(), c.rows, 100 * c.share(),
                c.pairs, 100 * c.pair_share());
  EXPECT_GT(left.back().rows, 500U);
  EXPECT_GE(left.back().share(), 0.80);
  EXPECT_LE(left.back().share(), 0.97);
  EXPECT_GE(left.back().weighted_share(), 0.80);
  EXPECT_LE(left.back().weighted_share(), 0.97);
}

}  // namespace
