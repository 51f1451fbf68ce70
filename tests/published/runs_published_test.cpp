// Runs of many sources (data/measured/runs.csv) against predictions: FLOPs that reconcile with what
// sources print, and errors within stated bounds. Hopper's sustained rate was fitted to dgxc's bf16
// runs, host times to vTrain's and dgxc's; nothing to the others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "core/measured/table.h"
#include "simulator/check/summary.h"

namespace simulator {
namespace {

const std::vector<CheckedRow>& rows() {
  static const auto checked =
      check_rows({core::read_measured_table(FORETRAIN_SOURCE_DIR "/data/measured/runs.csv")});
  return checked;
}

// TFLOP/s from our FLOPs and the measured time over the printed ones: 1 where the model was built
// as it ran. Where a source counts otherwise it is by a known amount: gpt-oss without a third of
// the gated experts, DeepSeek-V3 and the mixed ones exactly.
TEST(PublishedRuns, FlopsReconcileWithWhatSourcesPrint) {
  std::size_t held = 0;
  for (const auto& row : rows()) {
    if (!row.measured || !row.measured->tflops_per_gpu || !row.predicted_tflops_per_gpu ||
        !row.measured->step_time_s)
      continue;
    if (row.measured->step_time_from == "tflops_per_gpu_reported")
      continue;  // the time follows from them
    const double ours =
        *row.predicted_tflops_per_gpu * row.predicted->step_time_s / *row.measured->step_time_s;
    const double ratio = ours / *row.measured->tflops_per_gpu;
    const bool gpt_oss = row.run.model_family == "gpt_oss";
    const bool earlier_run =
        row.run.id == "bs_v100_dsy_52b_64_16_4_1024_137";  // its TFLOP/s belong to a run of 146 s
    EXPECT_NEAR(ratio,
                gpt_oss       ? 1.2
                : earlier_run ? 146.0 / 137.0
                              : 1.0,
                gpt_oss ? 0.05 : 0.015)
        << row.run.id;
    ++held;
  }
  EXPECT_GE(held, 30U);
}

// The worst bounds are the best figures that another planner reports on the same rows (Calculon: 17.2 %, and 8.87 % on the rows
// that it was tuned on).
TEST(PublishedRuns, MegatronsRowsAreEachPredictedBetterThanByAnyPeer) {
  const std::map<std::string, double> worst = {{"sc21_t1", 0.172}, {"korth22", 0.0887}};
  std::map<std::string, std::size_t> seen;
  for (const auto& row : rows()) {
    const auto bound = worst.find(row.source);
    if (bound == worst.end()) continue;
    ++seen[bound->first];
    EXPECT_LE(std::abs(row.step_time_error.value()), bound->second) << row.run.id;
  }
  EXPECT_EQ(seen["sc21_t1"], 7U);
  EXPECT_EQ(seen["korth22"], 6U);
}

// Bounds: the errors as they are, rounded up.
TEST(PublishedRuns, StayWithinTheErrorsOfEachSource) {
  struct Bound {
    double time, memory;  // of the means
  };
  const std::map<std::string, Bound> bounds = {
      {"sc21_t1", {0.025, 0}},
      {"sc21_t2", {0.55, 0}},
      {"korth22", {0.0365, 0}},
      {"mtnlg530b", {0.15, 0}},
      {"mb2", {0.16, 0}},
      {"dgxc", {0.03, 0}},
      {"nemolauncher", {0.05, 0}},
      {"automodel", {0.10, 0}},
      {"titan", {0.20, 0.30}},
      {"simumax", {0.30, 0.005}},
      {"bs_a100", {0.14, 0.08}},
      {"bs_v100", {0.22, 0.05}},
      {"dlperf", {0.07, 0.065}},
      {"mpt", {0.14, 0}},
      {"mleng", {0.06, 0.20}},
      {"mbskill", {0.09, 0.20}},
  };
  for (const auto& [source, s] : summarise_by(rows(), GroupBy::source)) {
    std::printf("%-13s time n %2zu mean %5.1f %% bias %+5.1f %%, memory n %2zu mean %5.1f %%\n",
                source.c_str(),
                s.step_time.n,
                100 * s.step_time.mean_abs,
                100 * s.step_time.bias,
                s.memory.n,
                100 * s.memory.mean_abs);
    const auto bound = bounds.find(source);
    ASSERT_NE(bound, bounds.end()) << source;
    if (s.step_time.n > 0) {
      EXPECT_LE(s.step_time.mean_abs, bound->second.time) << source;
    }
    if (s.memory.n > 0) {
      EXPECT_LE(s.memory.mean_abs, bound->second.memory) << source;
    }
    EXPECT_EQ(s.skipped, 0U) << source;
  }
  const auto oom = summarise_all(rows()).oom;
  EXPECT_EQ(oom.false_fits, 0U);
  EXPECT_LE(oom.false_ooms, 1U);
}

}  // namespace
}  // namespace simulator
