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
TEST(RepeatedRun, GivesTheStepTimeOfAPrediction) {
  const auto all = runs();
  ASSERT_GE(all.size(), 60U);
  for (const auto& run : all) {
    const RepeatedRun repeated(run);
    const auto curves = Curves::load(run.setting.cluster.gpu);
    EXPECT_EQ(repeated.step_time_s(run.setting, curves), predict(run, Bench(run.setting)).step_time_s);

    auto changed = run;
    for (auto* framework : {&changed.setting.framework, &changed.setting.sharded_framework}) {
      framework->host_per_launch = framework->host_per_launch * 3.0;
      framework->step_overhead = core::Seconds{0.5};
    }
    const auto slower = curves.with("memory_bound.efficiency", {0.3});
    EXPECT_EQ(repeated.step_time_s(changed.setting, slower), predict(changed, Bench(changed.setting, slower)).step_time_s);
  }
}

}  // namespace
}  // namespace simulator
