#include "fitting/precision/gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "fitting/precision/gaps_report.h"

namespace fitting {
namespace {

const GapGroup& group_of(const GapReport& report, const std::string& name) {
  const auto at = std::find_if(report.groups.begin(), report.groups.end(), [&](const auto& g) { return g.name == name; });
  EXPECT_NE(at, report.groups.end()) << name;
  return *at;
}

GapReport published() { return compare_gaps(core::data_dir() / "measured" / "precision_gaps.csv"); }

// The yardstick of published rows: 4-bit training from 4e8 parameters within a factor of 1.7, as 0.64 of the parameters gives.
TEST(Gaps, PredictFourBitTraining) {
  const auto report = published();
  const auto& group = group_of(report, "4-bit training from 4e8 parameters");
  EXPECT_GE(group.ratios.rows, 10U);
  EXPECT_LE(group.ratios.rms_factor, 1.7);
  EXPECT_NEAR(group.ratios.median, 1.0, 0.25);
  EXPECT_LT(group.ratios.rms_factor, group.kumar.rms_factor);
  EXPECT_LT(group.ratios.rms_factor, group.sun.rms_factor);
}

TEST(Gaps, PredictEightBitTrainingInsideItsRange) {
  const auto report = published();
  const auto& group = group_of(report, "8-bit training");
  EXPECT_EQ(group.values + group.bounds, 4U);
  EXPECT_EQ(group.inside, group.values);
  EXPECT_EQ(group.bounds_kept, group.bounds);
}

TEST(Gaps, PredictWeightsAfterTraining) {
  const auto report = published();
  const auto& group = group_of(report, "weights after training");
  EXPECT_EQ(group.rows, 15U);
  EXPECT_EQ(group.inside, group.values);
}

// Medians and rms factors of laws on eight rows of 4-bit training, computed elsewhere: Kumar 1.19 and 1.8, Sun 0.57 and 3.6,
// Chen 0.54 and 1.9, 0.64 of the parameters 0.89 and 1.7 (the medians of its table's printed digits).
TEST(Gaps, CompareLawsOnTheSameRows) {
  const std::vector<std::string> ids = {"fp4-wang-1.3b", "fp4-wang-7b", "fp4-quartet-430m", "fp4-quartet-7b", "q2-nanochat-nvidia", "fp4-nvfp4-8b", "fp4-mxfp4-8b", "fp4-nvfp4-12b"};
  std::vector<GapRow> rows;
  for (const auto& row : read_gap_rows(core::data_dir() / "measured" / "precision_gaps.csv")) {
    if (std::find(ids.begin(), ids.end(), row.id) != ids.end()) rows.push_back(row);
  }
  ASSERT_EQ(rows.size(), ids.size());
  const auto report = compare_gaps(rows, "rows");
  const auto& group = group_of(report, "4-bit training from 4e8 parameters");
  EXPECT_NEAR(group.kumar.median, 1.19, 0.01);
  EXPECT_NEAR(group.kumar.rms_factor, 1.8, 0.05);
  EXPECT_NEAR(group.sun.rms_factor, 3.6, 0.05);
  EXPECT_NEAR(group.chen.median, 0.54, 0.01);
  EXPECT_NEAR(group.chen.rms_factor, 1.9, 0.06);
  EXPECT_NEAR(group.eff_64.median, 0.89, 0.01);
  EXPECT_NEAR(group.eff_64.rms_factor, 1.7, 0.06);
}

GapRow row_of(const std::string& recipe, const std::string& metric, std::optional<double> gap, std::optional<double> percent) {
  GapRow row;
  row.id = "row";
  row.recipe = recipe;
  row.method = "training";
  row.metric = metric;
  row.baseline = "bf16";
  row.N = 8e9;
  row.D = 1e12;
  row.gap = gap;
  row.gap_percent = percent;
  return row;
}

std::string why_not(const GapRow& row) {
  const auto report = compare_gaps({row}, "row");
  return report.skipped.empty() ? "" : report.skipped.front().why;
}

TEST(Gaps, SayWhyARowIsNotCompared) {
  const std::string nvfp4 = "NVFP4 NVIDIA recipe";
  EXPECT_EQ(why_not(row_of(nvfp4, "train_loss", std::nullopt, 1.5)), "");
  EXPECT_NE(why_not(row_of(nvfp4, "none", std::nullopt, std::nullopt)).find("speed"), std::string::npos);
  EXPECT_NE(why_not(row_of(nvfp4, "tokens_to_target", 1e11, 8.5)).find("extra tokens"), std::string::npos);
  EXPECT_NE(why_not(row_of(nvfp4, "acc", 0.5, 1.0)).find("points"), std::string::npos);
  EXPECT_NE(why_not(row_of("HiFloat4", "train_loss", std::nullopt, 1.0)).find("hifloat4"), std::string::npos);
  auto row = row_of(nvfp4, "train_loss", std::nullopt, 1.5);
  row.D.reset();
  EXPECT_EQ(why_not(row), "tokens not stated");
  row.N.reset();
  EXPECT_EQ(why_not(row), "parameters not stated");
  row = row_of(nvfp4, "train_loss", std::nullopt, std::nullopt);
  EXPECT_NE(why_not(row).find("no number"), std::string::npos);
  row.notes = "DIVERGED: last layers";
  EXPECT_NE(why_not(row).find("diverged"), std::string::npos);
}

TEST(Gaps, KeepEveryRow) {
  const auto file = core::data_dir() / "measured" / "precision_gaps.csv";
  const auto report = compare_gaps(file);
  EXPECT_EQ(report.compared.size() + report.skipped.size(), read_gap_rows(file).size());
  std::size_t grouped = 0;
  for (const auto& group : report.groups) grouped += group.rows;
  EXPECT_EQ(grouped, report.compared.size());
}

// 0.64 of 8e9 parameters: 0.0291237522 nats of 2.0750739441.
TEST(Gaps, CompareInPercent) {
  const auto report = compare_gaps({row_of("NVFP4 NVIDIA recipe", "train_loss", std::nullopt, 1.5)}, "row");
  ASSERT_EQ(report.compared.size(), 1U);
  const double percent = 100.0 * 0.0291237522 / 2.0750739441;
  EXPECT_EQ(report.compared[0].unit, "%");
  EXPECT_NEAR(*report.compared[0].range.value, percent, 1e-4);
  EXPECT_NEAR(*report.compared[0].ratio, percent / 1.5, 1e-4);
  EXPECT_TRUE(report.compared[0].inside);
}

TEST(Gaps, HoldBoundsToTheValue) {
  auto row = row_of("w=e4m3/128x128;a=e4m3/1x128", "train_loss", std::nullopt, 0.25);
  row.notes = "UPPER BOUND";
  auto report = compare_gaps({row}, "row");
  EXPECT_TRUE(report.compared[0].bound);
  EXPECT_TRUE(report.compared[0].inside);
  EXPECT_FALSE(report.compared[0].ratio);
  row.gap_percent = 0.01;
  EXPECT_FALSE(compare_gaps({row}, "row").compared[0].inside);
}

// ppl 5.47 -> 5.73: ln(1 + 4.7532 %) = 0.04644 nats, of ln 5.47 = 1.6993.
TEST(Gaps, TakeNatsOfPerplexity) {
  auto row = row_of("w=int4 group 128", "ppl", 0.26, 4.7532);
  row.baseline_value = 5.47;
  const auto gap = measured_gap(row);
  EXPECT_NEAR(*gap.nats, 0.04644, 1e-5);
  EXPECT_NEAR(*gap.percent, 100.0 * 0.04644 / 1.69928, 1e-3);
  EXPECT_FALSE(gap.points);
}

TEST(Gaps, SummariseRatios) {
  const auto summary = summary_of({0.5, 2.0, 1.0});
  EXPECT_EQ(summary.rows, 3U);
  EXPECT_EQ(summary.median, 1.0);
  EXPECT_NEAR(summary.rms_factor, std::exp(std::sqrt(2.0 / 3.0) * std::log(2.0)), 1e-12);
  EXPECT_EQ(summary_of({2.0, 4.0}).median, 3.0);
}

TEST(Gaps, ComplainOfTablesInOneLine) {
  const auto file = std::filesystem::temp_directory_path() / "foretrain_gaps_test.csv";
  const auto complaint = [&](const std::string& text) -> std::string {
    std::ofstream(file) << text;
    try {
      read_gap_rows(file);
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::string header = "id,recipe,method,params_active,tokens,baseline,metric,gap_abs,gap_rel_percent\n";
  EXPECT_EQ(complaint(header + "r,NVFP4,training,8e9,1e12,bf16,train_loss,,1.5\n"), "");
  EXPECT_NE(complaint(header + "r,NVFP4,training,many,1e12,bf16,train_loss,,1.5\n").find("line 2: params_active: found \"many\""), std::string::npos);
  EXPECT_NE(complaint(header + "r,NVFP4,training,-8e9,1e12,bf16,train_loss,,1.5\n").find("expected a positive number"), std::string::npos);
  EXPECT_NE(complaint(header + "r,NVFP4\n").find("found 2 cells"), std::string::npos);
  EXPECT_NE(complaint("id,recipe\nr,NVFP4\n").find("no column method"), std::string::npos);
  EXPECT_NE(complaint(header).find("header alone"), std::string::npos);
  EXPECT_NE(complaint("").find("found no line"), std::string::npos);
  std::filesystem::remove(file);
}

TEST(Gaps, WriteEachFormatWithEveryRow) {
  const auto report = compare_gaps({row_of("NVFP4 NVIDIA recipe", "train_loss", std::nullopt, 1.5), row_of("none, \"quoted\"", "train_loss", std::nullopt, 1.0)}, "rows.csv");
  for (const auto& text : {gaps_table(report), gaps_markdown(report), gaps_csv(report), gaps_json(report, "1")}) {
    EXPECT_NE(text.find("nvfp4"), std::string::npos) << text;
    EXPECT_NE(text.find("no number format"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace fitting
