// Host time: a body whose kernels are over before the host has launched them takes the launches' time, any other its own.
#include <gtest/gtest.h>

#include "core/graph/launches.h"
#include "simulator/pricer.h"
#include "simulator/pricer/parts.h"
#include "tests/simulator/random_plans.h"

namespace {

using core::Part;
using core::Recompute;

struct Layer {
  simulator::PartTimes times;
  std::int64_t forward = 0, backward = 0;  // launches
};

Layer layer_of(const std::string& model, const core::ParallelPlan& plan, std::int64_t seq, double launch_us) {
  auto setting = random_plans::setting_of(model, {"a100-sxm-80", 8}, seq, "megatron-2021");
  setting.framework.host_per_launch = core::Seconds{launch_us * 1e-6};
  const simulator::Bench bench(setting);
  simulator::Pricer pricer(setting, bench);
  const auto& bodies = pricer.bodies(plan);
  const auto body = core::layer_body(setting.bodies_of(plan).kinds.front(), plan.recompute, plan);
  const auto& launches = setting.framework.launches;
  return {bodies.kinds.front()[simulator::index_of(plan.recompute)].parts, core::launches_of(launches, core::ops_of(body, Part::forward), plan.graphs),
          core::launches_of(launches, core::ops_of(body, Part::backward), plan.graphs)};
}

core::ParallelPlan plan_of(const std::string& text) { return core::parse_plan(text, "test").plan; }

TEST(Host, ASmallLayerTakesItsLaunches) {
  const auto plan = plan_of("tp=1 dp=8 mb=1 gbs=8 recompute=full");
  const auto layer = layer_of("tiny-gpt", plan, 64, 40.0);
  const auto us = [&](Part part) { return static_cast<double>(layer.times[simulator::index_of(part)].time) * 1e-6; };
  EXPECT_DOUBLE_EQ(us(Part::forward), 40.0 * static_cast<double>(layer.forward));
  EXPECT_DOUBLE_EQ(us(Part::backward), 40.0 * static_cast<double>(layer.backward));
  EXPECT_GT(layer.backward, 3 * layer.forward);
}

TEST(Host, ALargeLayerIsNotTouched) {
  const auto plan = plan_of("tp=1 dp=8 mb=4 gbs=32 recompute=full");
  const auto with = layer_of("llama-2-7b", plan, 4096, 40.0), without = layer_of("llama-2-7b", plan, 4096, 0.0);
  for (const auto part : {Part::forward, Part::backward}) {
    EXPECT_EQ(with.times[simulator::index_of(part)].time, without.times[simulator::index_of(part)].time);
  }
}

// CUDA_LAUNCH_BLOCKING=1: a launch waits for the kernel before it, so that both times add up.
TEST(Host, LaunchesThatWaitAddUp) {
  core::Framework framework;
  EXPECT_EQ(simulator::host_end(framework, 300, 200), 300);
  EXPECT_EQ(simulator::host_end(framework, 200, 300), 300);
  framework.launches_wait = true;
  EXPECT_EQ(simulator::host_end(framework, 300, 200), 500);
}

}  // namespace
