// Cell, mixed and op grain of one plan tell the same step time: exactly at mixed grain, within 3 %
// at cell grain, whose operations are whole cells that data-parallel communication slows evenly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/graph/lower.h"
#include "simulator/cost/prices.h"
#include "simulator/engine/engine.h"
#include "simulator/pricer.h"
#include "tests/simulator/random_plans.h"

namespace {

using core::Grain;
using random_plans::Limits;
using random_plans::Rng;
using simulator::Bench;
using simulator::Setting;

core::SimTime makespan(const Setting& setting,
                       const Bench& bench,
                       const core::ParallelPlan& plan,
                       Grain grain) {
  const auto& framework = setting.framework_of(plan);
  const auto work = core::step_work(
      setting.model, plan, setting.recipe, framework, setting.seq, setting.attention);
  const auto graph = core::lower(work, random_plans::table_of(plan), grain);
  const auto prices = simulator::prices_of(graph, bench.machine(), framework);
  return simulator::run(graph,
                        simulator::durations_of(prices),
                        simulator::contention_of(graph, bench.curves()),
                        simulator::kernel_shares_of(prices))
      .makespan;
}

// A part of the space of plans: a model on a machine, with some axes held.
struct Stratum {
  std::string name, model;
  random_plans::Machine machine;
  std::int64_t seq = 0;
  Limits limits;
};

Limits offloaded(Limits limits) {
  limits.offload = true;
  return limits;
}

Limits held(std::optional<std::int64_t> tp,
            std::optional<std::int64_t> pp,
            std::optional<int> zero,
            std::optional<std::int64_t> micro_batches = {},
            std::int64_t most_micro_batches = 16) {
  Limits limits;
  limits.tp = tp, limits.pp = pp, limits.zero = zero;
  limits.micro_batches = micro_batches;
  limits.most_micro_batches = most_micro_batches;
  return limits;
}

std::vector<Stratum> strata() {
  const auto any = held({}, {}, {});
  auto uneven = held({}, 4, {});
  uneven.layout = core::Layout::given;
  return {
      {"8b, 16 H100", "llama-3.1-8b", {"h100-sxm", 16}, 4096, any},
      {"1b, 32 H100", "llama-3.2-1b", {"h100-sxm", 32}, 2048, any},
      {"70b, 64 H100", "llama-3.1-70b", {"h100-sxm", 64}, 4096, any},
      {"70b, 64 A100", "llama-3.1-70b", {"a100-sxm-80", 64}, 4096, any},
      {"tiny llama, 8 H100", "tiny-llama", {"h100-sxm", 8}, 128, any},
      {"tiny gpt, 16 V100", "tiny-gpt", {"v100-sxm-32", 16}, 64, any},
      {"gpt2-xl, 16 V100", "gpt2-xl", {"v100-sxm-32", 16}, 1024, any},
      {"tensor parallel over 2 nodes, 8b, 32 H100",
       "llama-3.1-8b",
       {"h100-sxm", 32},
       4096,
       held(16, {}, {})},
      {"tensor parallel over 2 nodes, 70b, p4d",
       "llama-3.1-70b",
       {"a100-sxm-40", 64, "aws-p4d"},
       4096,
       held(16, {}, {})},
      {"zero 3, 8b, p4d", "llama-3.1-8b", {"a100-sxm-40", 32, "aws-p4d"}, 2048, held({}, {}, 3)},
      {"zero 3, 70b, p4d", "llama-3.1-70b", {"a100-sxm-40", 64, "aws-p4d"}, 2048, held({}, {}, 3)},
      {"zero 3, 1b, network 8 : 1",
       "llama-3.2-1b",
       {"h100-sxm", 64, "", 8.0},
       2048,
       held({}, {}, 3)},
      {"zero 2, 8b, p4d", "llama-3.1-8b", {"a100-sxm-40", 32, "aws-p4d"}, 2048, held({}, {}, 2)},
      {"zero 2, 1b, network 8 : 1",
       "llama-3.2-1b",
       {"h100-sxm", 64, "", 8.0},
       2048,
       held({}, {}, 2)},
      {"one micro-batch, 8b, 32 H100", "llama-3.1-8b", {"h100-sxm", 32}, 4096, held({}, {}, {}, 1)},
      {"one micro-batch, gpt2-xl, 16 V100",
       "gpt2-xl",
       {"v100-sxm-32", 16},
       1024,
       held({}, {}, {}, 1)},
      {"fewer micro-batches than stages, 8b",
       "llama-3.1-8b",
       {"h100-sxm", 32},
       4096,
       held({}, 8, {}, {}, 3)},
      {"uneven stages, 8b, 32 A100", "llama-3.1-8b", {"a100-sxm-80", 32}, 4096, uneven},
      {"offload, 8b, 16 H100", "llama-3.1-8b", {"h100-sxm", 16}, 4096, offloaded(any)},
      {"offload, zero 3, 70b, 32 H100", "llama-3.1-70b", {"h100-sxm", 32}, 4096, offloaded(held({}, {}, 3))},
      {"offload, 1b, one A100", "llama-3.2-1b", {"a100-sxm-80", 1}, 2048, offloaded(any)},
  };
}

TEST(Grains, AgreeOnStratifiedLegalPlans) {
  constexpr int plans_a_stratum = 30;
  constexpr double bound = 0.03;
  std::vector<double> deviations;
  std::string worst;
  double most = 0.0;
  for (const auto& stratum : strata()) {
    const auto setting = random_plans::setting_of(stratum.model, stratum.machine, stratum.seq);
    const Bench bench(setting);
    Rng rng(1);
    for (int i = 0; i < plans_a_stratum; ++i) {
      const auto plan = random_plans::draw_legal(rng, setting, stratum.limits);
      const auto what = stratum.name + ": " + core::to_text(plan);
      const auto op = makespan(setting, bench, plan, Grain::op);
      EXPECT_EQ(makespan(setting, bench, plan, Grain::mixed), op) << what;
      const double off = static_cast<double>(makespan(setting, bench, plan, Grain::cell)) /
                             static_cast<double>(op) -
                         1.0;
      EXPECT_LE(std::abs(off), bound) << what;
      deviations.push_back(std::abs(off));
      if (std::abs(off) > std::abs(most)) most = off, worst = what;
    }
  }
  ASSERT_GE(deviations.size(), 500U);
  std::sort(deviations.begin(), deviations.end());
  const auto quantile = [&](std::size_t percent) {
    return 100.0 * deviations[deviations.size() * percent / 100];
  };
  EXPECT_LE(quantile(99), 1.5);
  fmt::print(
      "cell / op - 1 over {} plans: median {:.4f} %, 90th {:.3f} %, 99th {:.2f} %, worst {:+.2f} "
      "%\n  {}\n",
      deviations.size(),
      quantile(50),
      quantile(90),
      quantile(99),
      100.0 * most,
      worst);
}

}  // namespace
