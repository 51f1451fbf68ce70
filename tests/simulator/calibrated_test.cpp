// What a calibration by measured runs does to a prediction: its times, and its interval.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "simulator/pricer.h"
#include "simulator/report.h"
#include "simulator/request.h"
#include "simulator/step.h"
#include "simulator/uncertainty.h"

namespace simulator {
namespace {

struct Case {
  const char* model;
  std::int64_t gpus;
  const char* plan;
};
const Case cases[] = {{"llama-3.1-8b", 32, "tp=2 sp pp=2 dp=8 mb=1 gbs=64"},
                      {"llama-3.1-8b", 16, "dp=16 zero=3 mb=1 gbs=64"},
                      {"mixtral-8x7b", 16, "ep=8 dp=16 mb=1 gbs=64"}};

Setting setting_of(const Case& c, double data_stall_ms = 0.0) {
  Request request;
  request.model = c.model, request.gpus = c.gpus, request.seq = 2048, request.data_stall_ms = data_stall_ms;
  return make_setting(request);
}

StepReport report_of(const Case& c, const Setting& setting) {
  auto plan = core::complete_plan(core::parse_plan(c.plan, "plan"), setting.model, c.gpus, 64, setting.cluster.node.gpus);
  plan.recipe = setting.recipe.name;
  return simulate_step(setting, Bench(setting), plan, core::Grain::cell, core::Fold::yes, Detail::depth).report;
}

// A run that is comparable to those of the cases: same GPU, class as theirs.
CalibratingRun run_like(const Setting& setting, const StepReport& report) {
  const Bench bench(setting);
  return {"mine", setting.cluster.gpu.name, class_of(setting, report.plan, bench.curves(), uncertainty().software), 1.0, 1.0};
}

TEST(Calibrated, ACommonFactorScalesAllTimesOfAStep) {
  for (const auto& c : cases) {
    auto setting = setting_of(c);
    const auto before = report_of(c, setting);
    calibrate(setting, {1.25, 1.25, 1.25, {run_like(setting, before)}});
    const auto after = report_of(c, setting);
    EXPECT_NEAR(after.step_time_s, 1.25 * before.step_time_s, 1e-6 * before.step_time_s) << c.plan;
    EXPECT_NEAR(after.tokens_per_s_per_gpu, before.tokens_per_s_per_gpu / 1.25, 1e-5 * before.tokens_per_s_per_gpu);
    EXPECT_NEAR(after.mfu, before.mfu / 1.25, 1e-6);
    EXPECT_NEAR(after.usd_per_step, 1.25 * before.usd_per_step, 1e-5 * before.usd_per_step);
    for (std::size_t i = 0; i < activities; ++i)
      EXPECT_NEAR(after.breakdown[i], 1.25 * before.breakdown[i], 1e-5 * before.step_time_s) << c.plan << ' ' << i;
    EXPECT_NEAR(std::accumulate(after.breakdown.begin(), after.breakdown.end(), 0.0), after.step_time_s,
                1e-3 * after.step_time_s);
    ASSERT_EQ(after.operations.size(), before.operations.size());
    EXPECT_NEAR(after.operations.front().seconds, 1.25 * before.operations.front().seconds, 1e-5 * before.step_time_s);
    EXPECT_EQ(after.peak_memory_GiB, before.peak_memory_GiB);
  }
}

TEST(Calibrated, LeavesWhatAStepWaitsForAsItWasGiven) {
  const auto& c = cases[0];
  auto setting = setting_of(c, 500.0);
  const auto before = report_of(c, setting);
  calibrate(setting, {2.0, 2.0, 2.0, {run_like(setting, before)}});
  const auto after = report_of(c, setting);
  EXPECT_NEAR(after.step_time_s - 0.5, 2.0 * (before.step_time_s - 0.5), 1e-6 * before.step_time_s);
  EXPECT_DOUBLE_EQ(after.breakdown[index_of(Activity::data_stall)], 0.5);
  EXPECT_GE(after.low_s, 0.5);
}

TEST(Calibrated, FactorsOfPartsMoveWhatTheyName) {
  const auto& c = cases[1];  // gathers weights: communication shows
  auto setting = setting_of(c), slow_links = setting, slow_kernels = setting;
  calibrate(slow_links, {1.0, 3.0, 1.0, {}});
  calibrate(slow_kernels, {1.5, 1.0, 1.0, {}});
  const auto before = report_of(c, setting), links = report_of(c, slow_links), kernels = report_of(c, slow_kernels);
  const auto part = [](const StepReport& r, Activity a) { return r.breakdown[index_of(a)]; };
  EXPECT_GT(part(links, Activity::dp_exposed), part(before, Activity::dp_exposed));
  EXPECT_NEAR(part(kernels, Activity::optimizer), 1.5 * part(before, Activity::optimizer), 1e-6 * before.step_time_s);
  EXPECT_NEAR(part(links, Activity::optimizer), part(before, Activity::optimizer), 1e-9);
}

// The pricer, which the search goes by, and the step graph take the same factors.
TEST(Calibrated, PricerAndStepGraphAgree) {
  for (const auto& c : cases) {
    auto setting = setting_of(c);
    const auto plain = report_of(c, setting);
    calibrate(setting, {1.3, 2.0, 1.1, {run_like(setting, plain)}});
    const Bench bench(setting);
    Pricer pricer(setting, bench);
    CellTimes times;
    pricer.cell_times(plain.plan, times);
    const auto bound = core::to_seconds(pricer.lower_bound(plain.plan, times)).value;
    const auto step = report_of(c, setting).step_time_s;
    EXPECT_LE(bound, step) << c.plan;
    EXPECT_GT(bound, 0.5 * step) << c.plan;
  }
}

TEST(Calibrated, ARunOfTheSameSystemNarrowsTheIntervalAndOthersLess) {
  const auto& u = uncertainty();
  const RunClass run{false, "Megatron-Core", true};
  const auto before = band_of(u, run, "hopper");
  const auto width = [](const Band& b) { return std::log(b.high / b.low); };
  const CalibratingRun same{"a", "h100-sxm", run, 1.0, 1.0};
  auto other_gpu = same, other_software = same;
  other_gpu.gpu = "b200", other_gpu.runs.own_curves = false;
  other_software.runs.software = "sharded (FSDP, ZeRO-3)";
  const auto by_same = narrowed(u, before, run, "h100-sxm", {same}), by_gpu = narrowed(u, before, run, "h100-sxm", {other_gpu}),
             by_software = narrowed(u, before, run, "h100-sxm", {other_software}),
             by_three = narrowed(u, before, run, "h100-sxm", {same, same, same});
  EXPECT_LT(width(by_same), width(before));
  EXPECT_LE(width(by_same), width(by_gpu));
  EXPECT_LE(width(by_gpu), width(before));
  EXPECT_EQ(width(by_software), width(before));
  EXPECT_NE(by_software.because.find("not comparable"), std::string::npos);
  // Three runs: (1 + 1/3) / 2 of the variance that one leaves.
  EXPECT_NEAR(std::log(by_three.high), std::sqrt(2.0 / 3.0) * u.narrowest(run).after_one_run, 1e-12);
  EXPECT_NE(by_same.because.find("1 run has calibrated"), std::string::npos) << by_same.because;
}

TEST(Calibrated, SaysWhatARunDiffersIn) {
  const RunClass run{true, "Megatron-Core", true};
  const CalibratingRun by{"a", "b200", {false, "sharded (FSDP, ZeRO-3)", false}, 1.0, 1.0};
  const auto text = difference_text(by, run, "h100-sxm");
  for (const auto* word : {"another GPU (b200, not h100-sxm)", "a dense model, not a mixture of experts", "other software"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
  EXPECT_EQ(difference_text({"a", "h100-sxm", run, 1.0, 1.0}, run, "h100-sxm"), "");
}

}  // namespace
}  // namespace simulator
