// One rank of a stage stands for its tensor- and data-parallel peers: folded and unfolded graphs
// have the same times to the picosecond and the same memory, on every rank.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/graph/lower.h"
#include "simulator/breakdown.h"
#include "simulator/cost/prices.h"
#include "simulator/engine/engine.h"
#include "tests/simulator/random_plans.h"

namespace {

using core::Fold;
using core::Grain;
using core::OpId;
using core::SimTime;
using random_plans::Limits;
using simulator::Bench;
using simulator::Setting;
using simulator::Slowdown;

struct Ran {
  core::StepGraph graph;
  std::vector<simulator::Price> prices;
  core::Timeline timeline;
};

Ran run(const Setting& setting,
        const Bench& bench,
        const core::ParallelPlan& plan,
        Grain grain,
        Fold fold,
        const Slowdown& slowdown) {
  Ran ran;
  const auto& framework = setting.framework_of(plan);
  const auto work = core::step_work(
      setting.model, plan, setting.recipe, framework, setting.seq, setting.attention);
  ran.graph = core::lower(work, random_plans::table_of(plan), grain, fold);
  ran.prices = simulator::prices_of(ran.graph, bench.machine(), framework);
  ran.timeline = simulator::run(ran.graph,
                                simulator::durations_of(ran.prices),
                                slowdown,
                                simulator::kernel_shares_of(ran.prices));
  return ran;
}

// What one queue does: key, start and end of each operation.
struct Entry {
  core::OpKey key;
  SimTime start = 0, end = 0;
  bool operator==(const Entry&) const = default;
};
std::vector<std::vector<Entry>> by_queue(const Ran& ran) {
  std::vector<std::vector<Entry>> queues(
      static_cast<std::size_t>(ran.graph.ranks * core::streams_per_rank));
  for (OpId op = 0; op < ran.graph.size(); ++op) {
    for (auto q = ran.graph.queue_begin[op]; q < ran.graph.queue_begin[op + 1]; ++q) {
      queues[ran.graph.queues[q]].push_back(
          {ran.graph.key[op], ran.timeline.start[op], ran.timeline.end[op]});
    }
  }
  return queues;
}

void expect_same(const core::ParallelPlan& plan, const Ran& folded, const Ran& unfolded) {
  EXPECT_EQ(folded.timeline.makespan, unfolded.timeline.makespan);
  EXPECT_EQ(folded.graph.ranks, plan.pp);
  EXPECT_EQ(unfolded.graph.ranks, plan.gpus());
  const auto few = by_queue(folded), all = by_queue(unfolded);
  const auto peers = plan.ranks_of_stage();
  for (std::int64_t r = 0; r < plan.gpus(); ++r) {
    const auto stage = r / peers;
    for (std::int64_t s = 0; s < core::streams_per_rank; ++s) {
      ASSERT_EQ(all[static_cast<std::size_t>(r * core::streams_per_rank + s)],
                few[static_cast<std::size_t>(stage * core::streams_per_rank + s)])
          << "rank " << r << " stream " << s;
    }
    const auto one = simulator::memory_peak({folded.graph, folded.timeline, folded.prices},
                                            static_cast<std::int32_t>(stage));
    const auto each = simulator::memory_peak({unfolded.graph, unfolded.timeline, unfolded.prices},
                                             static_cast<std::int32_t>(r));
    EXPECT_EQ(one.bytes, each.bytes);
    EXPECT_EQ(one.terms, each.terms);
    EXPECT_EQ(one.time, each.time);
  }
}

TEST(Fold, ChangesNothingOnRandomLegalPlans) {
  Limits limits;
  limits.most_tp = 4, limits.most_pp = 4, limits.most_micro_batches = 6;
  int tensor = 0, sharded = 0, interleaved = 0;
  for (const std::int64_t gpus : {1, 4, 6, 8, 16, 32}) {
    for (const std::string model : {"tiny-gpt", "tiny-llama"}) {
      const auto setting = random_plans::setting_of(model, {"h100-sxm", gpus}, 64);
      const Bench bench(setting);
      random_plans::Rng rng(static_cast<std::uint64_t>(gpus));
      for (int i = 0; i < 4; ++i) {
        const auto plan = random_plans::draw_legal(rng, setting, limits);
        SCOPED_TRACE(model + ": " + core::to_text(plan));
        tensor += plan.tp > 1 ? 1 : 0;
        sharded += plan.zero == 3 && plan.dp > 1 ? 1 : 0;
        interleaved += plan.vpp > 1 ? 1 : 0;
        for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
          for (const auto& slowdown : {Slowdown{}, simulator::slowdown_of(bench.curves())}) {
            SCOPED_TRACE(core::name_of(grain));
            expect_same(plan,
                        run(setting, bench, plan, grain, Fold::yes, slowdown),
                        run(setting, bench, plan, grain, Fold::no, slowdown));
          }
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GE(tensor, 10);
  EXPECT_GE(sharded, 5);
  EXPECT_GE(interleaved, 5);
}

TEST(Fold, ChangesNothingWithOffload) {
  Limits limits;
  limits.most_tp = 4, limits.most_pp = 4, limits.most_micro_batches = 6;
  limits.offload = true, limits.any_schedule = true;
  int weights = 0;
  for (const std::int64_t gpus : {1, 4, 8, 16}) {
    const auto setting = random_plans::setting_of("tiny-llama", {"h100-sxm", gpus}, 64);
    const Bench bench(setting);
    random_plans::Rng rng(static_cast<std::uint64_t>(gpus));
    for (int i = 0; i < 8; ++i) {
      const auto plan = random_plans::draw_legal(rng, setting, limits);
      SCOPED_TRACE(core::to_text(plan));
      weights += plan.offload.weights ? 1 : 0;
      for (const auto grain : {Grain::cell, Grain::op}) {
        expect_same(plan,
                    run(setting, bench, plan, grain, Fold::yes, simulator::slowdown_of(bench.curves())),
                    run(setting, bench, plan, grain, Fold::no, simulator::slowdown_of(bench.curves())));
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(weights, 3);
}

// Experts on part of a stage's ranks, with tensor groups and sharding groups of their own; latent and linear attention under
// context parallelism; states over groups and in levels.
TEST(Fold, ChangesNothingForExpertsGroupsAndHybrids) {
  struct Case {
    std::string model;
    std::size_t layers;
    std::string plan;
  };
  for (const auto& c : std::vector<Case>{
           {"mixtral-8x7b", 2, "dp=8 ep=4 gbs=16 zero=1"},
           {"mixtral-8x7b", 4, "pp=2 dp=4 ep=2 gbs=16 recompute=moe layers=slots"},
           {"mixtral-8x7b", 2, "tp=2 sp dp=4 etp=2 ep=2 gbs=8 zero=2"},
           {"mixtral-8x7b", 2, "dp=16 ep=2 gbs=16 shard=p:none,g:2,o:8 expert-shard=p:none,g:2,o:4"},
           {"mixtral-8x7b", 2, "dp=16 ep=4 gbs=16 shard=p:4,g:8,o:all collectives=overlapping"},
           {"deepseek-v2-lite", 3, "tp=2 sp cp=2 dp=2 ep=4 gbs=4 zero=1 overlap=both+experts"},
           {"kimi-linear-48b-a3b", 4, "cp=2:all-gather pp=2 dp=2 ep=4 gbs=8 zero=1"},
           {"nemotron-h-56b", 9, "cp=2 dp=4 gbs=8 shard=p:4,g:4,o:4 collectives=hierarchical"}}) {
    auto plan = core::parse_plan(c.plan, "test").plan;
    SCOPED_TRACE(c.model + ": " + core::to_text(plan));
    auto setting = random_plans::setting_of(c.model, {"h100-sxm", plan.gpus()}, 256);
    setting.model.layer_kind.resize(c.layers);
    ASSERT_EQ(core::why_not(setting.model, plan, plan.gpus(), 256), std::nullopt);
    const Bench bench(setting);
    for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
      SCOPED_TRACE(core::name_of(grain));
      const auto slowdown = simulator::slowdown_of(bench.curves());
      expect_same(plan,
                  run(setting, bench, plan, grain, Fold::yes, slowdown),
                  run(setting, bench, plan, grain, Fold::no, slowdown));
    }
  }
}

// Each lowered rank stands for the ranks that it says.
TEST(Fold, MultiplicitiesAddUpToTheGpus) {
  const auto setting = random_plans::setting_of("tiny-llama", {"h100-sxm", 16}, 64);
  random_plans::Rng rng(5);
  for (int i = 0; i < 20; ++i) {
    const auto plan = random_plans::draw_legal(rng, setting);
    const auto work = core::step_work(setting.model,
                                      plan,
                                      setting.recipe,
                                      setting.framework_of(plan),
                                      setting.seq,
                                      setting.attention);
    for (const auto fold : {Fold::yes, Fold::no}) {
      std::int64_t sum = 0;
      for (const auto n :
           core::lower(work, random_plans::table_of(plan), Grain::cell, fold).multiplicity)
        sum += n;
      EXPECT_EQ(sum, plan.gpus());
    }
  }
}

}  // namespace
