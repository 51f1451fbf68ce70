// The smallest change that makes a plan fit, where that is offload.
#include "planner/advice.h"

#include <gtest/gtest.h>

#include <string>

#include "simulator/request.h"

namespace planner {
namespace {

struct Asked {
  std::string model, gpu;
  std::int64_t gpus = 1, seq = 0;
  std::string plan;
};

std::optional<Change> change(const Asked& asked, double host = 1.0) {
  simulator::Request request;
  request.model = asked.model, request.gpu = asked.gpu, request.gpus = asked.gpus, request.seq = asked.seq;
  auto setting = simulator::make_setting(request);
  setting.cluster.node.host_memory = core::Bytes{host * setting.cluster.node.host_memory.value};
  const auto plan = core::complete_plan(core::parse_plan(asked.plan, "plan"), setting.model, asked.gpus, 1);
  EXPECT_EQ(core::why_not(setting.model, plan, asked.gpus, asked.seq), std::nullopt);
  return smallest_change(setting, simulator::Bench(setting), plan);
}

// Field case F21: 7B in full on one GPU of 80 GB. One GPU has nobody to share states with, and full recompute is on.
TEST(SmallestChange, OfAFineTuneOnOneGpuIsToOffloadTheOptimizer) {
  const Asked f21{"llama-2-7b", "a100-sxm-80", 1, 4096, "gbs=8 recompute=full"};
  const auto found = change(f21);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "offload=optimizer");
  EXPECT_NE(found->report.fits, simulator::Fits::no);
  // Not where the host lacks the 16 bytes a parameter that it takes: 108 GB of 2 TB.
  EXPECT_FALSE(change(f21, 0.04));
}

// Layers that save too much while states fit: on a fast link their copies are hidden, and recompute would cost a third.
TEST(SmallestChange, OfActivationsThatDoNotFitIsToOffloadThem) {
  const auto found = change({"llama-3.2-3b", "gb200", 1, 131072, "gbs=1 loss=linear"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "offload=activations");
}

}  // namespace
}  // namespace planner
