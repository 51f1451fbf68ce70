#include "planner/calibrate/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/io/data_dir.h"
#include "core/measured/table.h"
#include "simulator/check/predict.h"

namespace {

planner::CalibrationSpec shipped() {
  return planner::read_calibration(core::data_dir() / "calibration" / "parameters.json");
}

// What is added once a step moves a row by a tenth of it over the row's time.
TEST(Sensitivity, OfAStepsOverheadIsItsShareOfTheTime) {
  auto table = core::read_measured_table(core::data_dir() / "measured" / "runs.csv");
  table.runs.resize(20);
  const auto spec = shipped();
  const auto rows = planner::calibration_rows({table}, spec);
  const auto found =
      planner::sensitivities({{"frameworks", "megatron-2021", "step_overhead_ms", {15.0}, {}}}, rows, 1.1);
  double sum = 0.0;
  std::size_t moved = 0;
  for (const auto& row : rows.rows) {
    if (row.run.setting.framework_of(row.run.plan).name != "megatron-2021") continue;
    ++moved;
    sum += 0.1 * 0.015 / simulator::predict(row.run, simulator::Bench(row.run.setting)).step_time_s;
  }
  ASSERT_GT(moved, 0U);
  ASSERT_LT(moved, rows.rows.size());
  EXPECT_EQ(found.front().rows, moved);
  EXPECT_NEAR(found.front().share, static_cast<double>(moved) / static_cast<double>(rows.rows.size()), 1e-12);
  EXPECT_NEAR(found.front().mean_change, sum / static_cast<double>(rows.rows.size()), 1e-9);
}

TEST(Sensitivity, TakesFiguresAsTheyStandAndWholeListsOnce) {
  auto spec = shipped();
  auto by_number = spec.parameters;
  std::erase_if(by_number, [](const planner::Parameter& p) { return p.name != "flash1 rate, Ampere"; });
  ASSERT_EQ(by_number.size(), 1U);
  auto one = by_number.front();
  one.targets.resize(1);
  one.targets.front().element = 0;
  one.targets.front().start = {0.5};
  spec.parameters = {one, one};
  spec.parameters.back().targets.front().element = 1;
  const auto figures = planner::declared_figures({spec, spec});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_FALSE(figures.front().element.has_value());
  EXPECT_EQ(figures.front().start,
            simulator::Curves::load(core::load_gpu("a100-sxm-80")).list("attention.flash1.forward_rate"));
}

}  // namespace
