#include "simulator/check/predict.h"

#include <gtest/gtest.h>

#include "core/io/data_dir.h"
#include "core/measured/table.h"

namespace simulator {
namespace {

std::vector<Translation> runs() {
  std::vector<Translation> translated;
  for (const auto& run : core::read_measured_table(core::data_dir() / "measured" / "runs.csv").runs)
    translated.push_back(translate(run));
  return translated;
}

// The graph that is made once gives what a graph made anew gives, to the picosecond: with the run's constants, and with other
// curves and other times of the host.
TEST(RepeatedStep, GivesTheStepTimeOfAPrediction) {
  const auto all = runs();
  ASSERT_GE(all.size(), 60U);
  for (const auto& run : all) {
    auto step = repeated(run);
    const auto curves = Curves::load(run.setting.cluster.gpu);
    const double plain = predict(run, Bench(run.setting)).step_time_s;
    EXPECT_EQ(step.time(run.setting, Bench(run.setting, curves)).value, plain);

    auto changed = run;
    for (auto* framework : {&changed.setting.framework, &changed.setting.sharded_framework}) {
      framework->host_per_launch = framework->host_per_launch * 3.0;
      framework->step_overhead = core::Seconds{0.5};
    }
    const auto slower = curves.with("memory_bound.efficiency", {0.3});
    const Bench bench(changed.setting, slower);
    EXPECT_EQ(step.time(changed.setting, bench).value, predict(changed, bench).step_time_s);
    EXPECT_EQ(step.time(run.setting, Bench(run.setting, curves)).value, plain);
  }
}

}  // namespace
}  // namespace simulator
