#include "planner/calibrate/own_runs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/io/data_dir.h"

namespace {

using planner::OwnRun;
using simulator::SystemCalibration;

planner::OwnRunRules shipped_rules() { return planner::read_own_run_rules(core::data_dir() / "calibration" / "own_runs.json"); }

// Rows of the shipped table whose times are what we predict under given factors.
std::vector<OwnRun> made_runs(const std::vector<std::string>& ids, const SystemCalibration& truth) {
  std::vector<OwnRun> runs;
  for (const auto& id : ids) {
    runs.push_back(planner::read_own_run(id, {}));
    runs.back().measured_s = planner::predicted_s(runs.back().run, truth);
  }
  return runs;
}

// GPT of 175 B under ZeRO-3 on 384 to 1536 GPUs, whose gathers show, and Megatron's plans, whose communication hardly does.
const std::vector<std::string> varied = {"sc21_t2_174.6b_zero3_384",
                                         "sc21_t2_174.6b_zero3_768",
                                         "sc21_t2_174.6b_zero3_1536",
                                         "sc21_t1_1.7b",
                                         "sc21_t1_18.4b",
                                         "sc21_t1_76.1b",
                                         "sc21_t1_145.6b"};

TEST(OwnRuns, OneRunGivesMeasuredOverPredictedForAllTimes) {
  const auto runs = made_runs({"sc21_t1_18.4b"}, {1.2, 1.2, 1.2, {}});
  const auto c = planner::calibrate_to(runs, shipped_rules());
  for (const double factor : {c.kernels, c.communication, c.host}) EXPECT_NEAR(factor, 1.2, 1e-6);
  ASSERT_EQ(c.runs.size(), 1u);
  EXPECT_NEAR(c.runs[0].measured_s, 1.2 * c.runs[0].predicted_s, 1e-6 * c.runs[0].measured_s);
  EXPECT_EQ(c.runs[0].gpu, "a100-sxm-80");
}

TEST(OwnRuns, RunsThatDifferByOneFactorGetOneFactor) {
  const auto c = planner::calibrate_to(made_runs(varied, {1.15, 1.15, 1.15, {}}), shipped_rules());
  EXPECT_EQ(c.kernels, c.communication);
  EXPECT_EQ(c.kernels, c.host);
  EXPECT_NEAR(c.kernels, 1.15, 0.005);
}

TEST(OwnRuns, RunsThatTellGiveCommunicationAFactorOfItsOwn) {
  const auto runs = made_runs(varied, {1.1, 1.5, 1.1, {}});
  const auto c = planner::calibrate_to(runs, shipped_rules());
  EXPECT_NEAR(c.kernels, 1.1, 0.03);
  EXPECT_NEAR(c.communication, 1.5, 0.15);
  for (const auto& run : runs) EXPECT_NEAR(planner::predicted_s(run.run, c) / run.measured_s, 1.0, 0.03) << run.name;
}

TEST(OwnRuns, NeverTakeAsManyFactorsAsRuns) {
  const auto c =
      planner::calibrate_to(made_runs({"sc21_t2_174.6b_zero3_384", "sc21_t1_18.4b"}, {1.0, 2.0, 1.0, {}}), shipped_rules());
  EXPECT_EQ(c.kernels, c.communication);
}

std::string complaint_of(const std::string& argument) {
  try {
    planner::read_own_run(argument, {});
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(OwnRuns, NameWhatIsWrongWithARun) {
  EXPECT_NE(complaint_of("sc21_t1_18.4").find("did you mean sc21_t1_18.4b?"), std::string::npos);
  const auto table = (core::data_dir() / "measured" / "runs.csv").string();
  EXPECT_NE(complaint_of(table).find("expected " + table + ":ID"), std::string::npos) << complaint_of(table);
  EXPECT_NE(complaint_of("no-such-file.csv:a").find("no-such-file.csv"), std::string::npos);
  EXPECT_EQ(complaint_of(table + ":sc21_t1_18.4b"), "");
}

}  // namespace
