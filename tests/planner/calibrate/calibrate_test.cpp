#include "planner/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/io/data_dir.h"
#include "planner/calibrate/pricing.h"
#include "planner/calibrate/report.h"
#include "planner/calibrate/write.h"

namespace {

using planner::CalibrationRows;
using planner::CalibrationSpec;
using planner::LeaveOneOut;

// Runs on few A100 that the shipped table holds: their plans are real, their times are replaced
// where a test needs times whose cause is known.
CalibrationRows a100_rows(const CalibrationSpec& spec) {
  auto table = core::read_measured_table(core::data_dir() / "measured" / "runs.csv");
  std::erase_if(table.runs, [](const core::MeasuredRun& run) {
    return run.gpu.find("A100") == std::string::npos || run.gpus.value_or(0) > 128;
  });
  return planner::calibration_rows({table}, spec);
}

// The shipped specification less all but the parameters named.
CalibrationSpec only(const std::vector<std::string>& names) {
  auto spec = planner::read_calibration(core::data_dir() / "calibration" / "parameters.json");
  std::erase_if(spec.parameters, [&](const planner::Parameter& p) {
    return std::find(names.begin(), names.end(), p.name) == names.end();
  });
  EXPECT_EQ(spec.parameters.size(), names.size());
  return spec;
}

// Times that our own model gives with the parameters at their starts times exp(x).
void predict_times(const CalibrationSpec& spec,
                   const std::vector<double>& x,
                   CalibrationRows& rows) {
  const planner::Pricing pricing(spec, rows.rows);
  const auto point = pricing.at(x);
  std::vector<double> times;
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    times.push_back(rows.rows[i].measured_s * std::exp(pricing.residuals(i, {&point}).front()));
  for (std::size_t i = 0; i < times.size(); ++i) rows.rows[i].measured_s = times[i];
}

TEST(Calibrate, FindsConstantsThatMadeItsRows) {
  auto spec = only({"sustained rate, Ampere", "step overhead, Megatron of 2021"});
  for (auto& p : spec.parameters) p.log_sigma = 100.0;  // times without noise need no prior
  auto rows = a100_rows(spec);
  ASSERT_GE(rows.rows.size(), 6u);
  const std::vector<double> factors = {0.8, 3.0};
  predict_times(spec, {std::log(factors[0]), std::log(factors[1])}, rows);
  const auto result = planner::calibrate(spec, rows, LeaveOneOut::no);
  EXPECT_TRUE(result.converged) << result.message;
  for (std::size_t j = 0; j < factors.size(); ++j) {
    const double wanted = factors[j] * spec.parameters[j].start();
    EXPECT_NEAR(result.fitted[j].value, wanted, 0.01 * wanted) << spec.parameters[j].name;
    EXPECT_FALSE(result.fitted[j].at_bound);
  }
  EXPECT_LT(result.all().after.p90_abs, 0.002);
  EXPECT_GT(result.all().before.median_abs, 0.05);
}

TEST(Calibrate, LeavesAParameterThatNoRowTouchesAtItsStart) {
  const auto spec = only({"sustained rate, Ampere", "sustained rate, Blackwell"});
  const auto result = planner::calibrate(spec, a100_rows(spec), LeaveOneOut::no);
  EXPECT_GT(result.fitted[0].rows_touched, 0u);
  const auto& idle = result.fitted[1];
  EXPECT_EQ(idle.rows_touched, 0u);
  EXPECT_EQ(idle.value, spec.parameters[1].start());
  // All that is known of it is the prior.
  EXPECT_NEAR(idle.standard_error, spec.parameters[1].log_sigma, 1e-9);
  EXPECT_NE(planner::calibration_table(result).find("no row touches it: stays at its start"),
            std::string::npos);
}

TEST(Calibrate, GivesTheSameBytesOnAnyNumberOfThreads) {
  const auto spec = only({"sustained rate, Ampere", "flash1 rate, Ampere", "NIC rings, Ampere"});
  std::vector<std::string> texts;
  for (const int threads : {1, 2}) {
    const auto result = planner::calibrate(spec, a100_rows(spec), LeaveOneOut::yes, threads);
    ASSERT_TRUE(result.all().left_out);
    texts.push_back(planner::calibration_json(result));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Calibrate, WeighsASourceAsTheRootOfItsConfigurations) {
  const auto spec = only({"sustained rate, Ampere"});
  const auto rows = a100_rows(spec);
  std::map<std::string, double> weight;
  std::map<std::string, std::size_t> n;
  for (const auto& row : rows.rows) {
    weight[row.source] += row.weight;
    ++n[row.source];
  }
  // Each of its rows is another configuration.
  ASSERT_TRUE(n.contains("korth22"));
  EXPECT_NEAR(weight.at("korth22"), std::sqrt(static_cast<double>(n.at("korth22"))), 1e-9);
}

TEST(Calibrate, HoldsBackASourceThatIsLeftOut) {
  const auto spec = only({"sustained rate, Ampere"});
  const auto table = core::read_measured_table(core::data_dir() / "measured" / "runs.csv");
  const auto rows = planner::calibration_rows({table}, spec, "korth22");
  const auto result = planner::calibrate(spec, rows, LeaveOneOut::no);
  EXPECT_GT(result.held_back, 0u);
  EXPECT_EQ(result.rows + result.held_back, rows.rows.size());
  EXPECT_EQ(result.all().after.n, result.rows);
  try {
    planner::calibration_rows({table}, spec, "nobody");
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_STREQ(error.what(), "--leave-out nobody: no row of the tables has this source");
  }
}

TEST(Calibrate, CountsAllOfMegatronBridgeAsOneSource) {
  core::MeasuredRun run;
  run.id = "mb2606_llama3_8b";
  EXPECT_EQ(planner::calibration_source(run), "mb");
  run.id = "mbskill_gpt";
  EXPECT_EQ(planner::calibration_source(run), "mb");
  run.id = "korth22_175b";
  EXPECT_EQ(planner::calibration_source(run), "korth22");
}

// A figure of a framework that times do not follow from is refused.
TEST(Calibrate, ReachesRowsWithEachShippedFigureOfAFramework) {
  const auto spec = planner::read_calibration(core::data_dir() / "calibration" / "parameters.json");
  const auto rows = planner::calibration_rows(
      {core::read_measured_table(core::data_dir() / "measured" / "runs.csv")}, spec);
  const planner::Pricing pricing(spec, rows.rows);
  for (std::size_t j = 0; j < spec.parameters.size(); ++j) {
    if (spec.parameters[j].targets.front().folder != "frameworks") continue;
    bool reached = false;
    for (std::size_t i = 0; i < rows.rows.size(); ++i) reached |= pricing.reaches(j, i);
    EXPECT_TRUE(reached) << spec.parameters[j].name;
  }
}

// A curve of a part hides that of its architecture.
TEST(Calibrate, ReachesTheRowsThatReadAFile) {
  const auto spec = only({"sustained rate, Hopper", "sustained rate, H100 of 500 W"});
  CalibrationRows rows;
  rows.rows = a100_rows(spec).rows;
  rows.rows.resize(2);
  rows.rows[0].run.setting.cluster.gpu = core::load_gpu("h100-sxm");
  rows.rows[1].run.setting.cluster.gpu = core::load_gpu("h100-sxm-96");
  const planner::Pricing pricing(spec, rows.rows);
  EXPECT_TRUE(pricing.reaches(0, 0));
  EXPECT_FALSE(pricing.reaches(1, 0));
  EXPECT_FALSE(pricing.reaches(0, 1));
  EXPECT_TRUE(pricing.reaches(1, 1));
}

TEST(Calibrate, WritesTheSameFilesFromItsOwnResult) {
  namespace fs = std::filesystem;
  const auto spec =
      only({"sustained rate, Ampere", "flash1 rate, Ampere", "step overhead, Megatron of 2021"});
  const auto result = planner::calibrate(spec, a100_rows(spec), LeaveOneOut::no);
  const auto data = fs::path(testing::TempDir()) / "calibrate_data";
  fs::remove_all(data);
  fs::create_directories(data);
  for (const auto* folder : {"curves", "frameworks"})
    fs::copy(core::data_dir() / folder, data / folder, fs::copy_options::recursive);
  const auto first = planner::written(result, data, "simulate calibrate runs.csv");
  planner::write_data(first, data);
  const auto second = planner::written(result, data, "simulate calibrate runs.csv");
  ASSERT_EQ(first.size(), 2u);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].file, second[i].file);
    EXPECT_EQ(first[i].text, second[i].text);
  }
  EXPECT_NE(first[0].text.find("simulate calibrate runs.csv: 3 parameters on "), std::string::npos);
}

std::string complaint(const std::string& from, const std::string& to) {
  std::ifstream in(core::data_dir() / "calibration" / "parameters.json");
  std::string text(std::istreambuf_iterator<char>(in), {});
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto file = std::filesystem::path(testing::TempDir()) / "parameters.json";
  std::ofstream(file) << text;
  try {
    planner::read_calibration(file);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Calibrate, NamesWhatIsWrongInItsParameters) {
  EXPECT_NE(complaint("\"sustained.rate\"", "\"sustained.rat\"")
                .find("key: expected the key of a number in curves/volta.json"),
            std::string::npos);
  EXPECT_NE(complaint("\"curves/volta.json\"", "\"curves/vlota.json\"")
                .find("file: expected a file below data/curves or data/frameworks"),
            std::string::npos);
  EXPECT_NE(complaint("\"high\": 1.1", "\"high\": 0.9").find("start: expected a start between low"),
            std::string::npos);
  EXPECT_NE(complaint("\"noise\"", "\"nose\"").find("nose"), std::string::npos);
}

}  // namespace
