// The pricer and the cell runner are shortcuts: the same numbers as the graph at cell grain, its
// engine and its memory curve, without the graph.
#include "simulator/pricer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/graph/lower.h"
#include "simulator/breakdown.h"
#include "simulator/engine/cells.h"
#include "simulator/engine/engine.h"
#include "simulator/step.h"
#include "tests/simulator/pieces.h"
#include "tests/simulator/random_plans.h"

namespace {

using core::Grain;
using core::SimTime;
using random_plans::Limits;
using random_plans::Rng;
using simulator::Bench;
using simulator::CellRunner;
using simulator::CellTimes;
using simulator::Pricer;
using simulator::RankMemory;
using simulator::Setting;

struct Question {
  std::string model;
  random_plans::Machine machine;
  std::int64_t seq = 0;
  std::string framework = "megatron";
};

const std::vector<Question>& questions() {
  static const std::vector<Question> all = {
      {"llama-3.1-8b", {"h100-sxm", 16}, 4096},
      {"llama-3.2-1b",
       {"a100-sxm-80", 12},
       2048,
       "fsdp"},  // tied, and 12 GPUs that are no power of two
      {"llama-3.1-70b", {"h100-sxm", 64}, 4096},
      {"gpt2-xl", {"v100-sxm-32", 16}, 1024},           // tied
      {"gemma-3-4b-text", {"h100-sxm", 16}, 4096},      // local and global layers
      {"phi-2", {"a100-sxm-40", 16, "aws-p4d"}, 2048},  // attention and mlp in parallel
      {"tiny-gpt", {"h100-sxm", 8}, 64},
      {"tiny-llama", {"v100-sxm-32", 24}, 128, "fsdp"},
  };
  return all;
}

struct Ran {
  core::StepGraph graph;
  std::vector<simulator::Price> prices;
  core::Timeline timeline;
};

Ran run_graph(const Setting& setting,
              const Bench& bench,
              const core::ParallelPlan& plan,
              Grain grain) {
  Ran ran;
  const auto& framework = setting.framework_of(plan);
  const auto work = core::step_work(
      setting.model, plan, setting.recipe, framework, setting.seq, setting.attention);
  ran.graph = core::lower(work, random_plans::table_of(plan), grain);
  ran.prices = simulator::prices_of(ran.graph, bench.machine(), work.framework);
  ran.timeline = simulator::run(ran.graph,
                                simulator::durations_of(ran.prices),
                                simulator::contention_of(ran.graph, bench.curves()),
                                simulator::kernel_shares_of(ran.prices));
  return ran;
}

template <class Check>
void for_each_plan(int plans_a_question, std::uint64_t seed, const Check& check) {
  for (const auto& q : questions()) {
    const auto setting = random_plans::setting_of(q.model, q.machine, q.seq, q.framework);
    const Bench bench(setting);
    Pricer pricer(setting, bench);
    Rng rng(seed);
    for (int i = 0; i < plans_a_question; ++i) {
      const auto plan = random_plans::draw_legal(rng, setting);
      SCOPED_TRACE(q.model + ": " + core::to_text(plan));
      check(setting, bench, pricer, plan);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Pricer, RunsCellsToTheTimeOfTheGraph) {
  CellRunner runner;
  CellTimes times;
  for_each_plan(40,
                11,
                [&](const Setting& setting,
                    const Bench& bench,
                    Pricer& pricer,
                    const core::ParallelPlan& plan) {
                  pricer.cell_times(plan, times);
                  EXPECT_EQ(runner.run(random_plans::table_of(plan), times),
                            run_graph(setting, bench, plan, Grain::cell).timeline.makespan);
                });
}

// Models with experts, latent and linear attention, under every schedule.
const std::vector<Question>& wide_questions() {
  static const std::vector<Question> all = {
      {"mixtral-8x7b", {"h100-sxm", 16}, 4096},
      {"deepseek-v2-lite", {"h800-sxm", 16}, 4096},
      {"qwen3-30b-a3b", {"h100-sxm", 32}, 4096},
      {"qwen3-next-80b-a3b", {"h100-sxm", 32}, 4096},
      {"nemotron-h-56b", {"h100-sxm", 32}, 4096},
      {"tiny-llama", {"h100-sxm", 16}, 128},
      {"ouro-2.6b", {"h100-sxm", 8}, 2048},  // layers that run again with the same weights
  };
  return all;
}

TEST(Pricer, RunsEverySchedulesCellsToTheTimeAndMemoryOfTheGraph) {
  CellRunner runner;
  CellTimes times;
  std::vector<RankMemory> memory;
  Limits limits;
  limits.any_schedule = true;
  int pairs = 0, splits = 0;
  for (const auto& q : wide_questions()) {
    const auto setting = random_plans::setting_of(q.model, q.machine, q.seq, q.framework);
    const Bench bench(setting);
    Pricer pricer(setting, bench);
    Rng rng(21);
    for (int i = 0; i < 60; ++i) {
      const auto plan = random_plans::draw_legal(rng, setting, limits);
      SCOPED_TRACE(q.model + ": " + core::to_text(plan));
      const auto table = random_plans::table_of(plan);
      pricer.cell_times(plan, times);
      const auto makespan = runner.run(table, times);
      const auto ran = run_graph(setting, bench, plan, Grain::cell);
      ASSERT_EQ(makespan, ran.timeline.makespan);
      EXPECT_LE(pricer.lower_bound(plan, times), makespan);
      const auto work = simulator::work_of(table);
      const auto at_least = runner.at_least(table, work, times);
      EXPECT_LE(at_least, makespan);
      EXPECT_GT(at_least, 0);
      pricer.cell_times(plan, times, Pricer::Pairs::least);
      EXPECT_LE(runner.at_least(table, work, times), at_least);
      if (i % 4 == 0) {
        EXPECT_EQ(run_graph(setting, bench, plan, Grain::mixed).timeline.makespan,
                  run_graph(setting, bench, plan, Grain::op).timeline.makespan);
      }
      pricer.memory(plan, table, memory);
      const auto* schedule = core::find_schedule(plan.schedule);
      pairs += schedule->pairs ? 1 : 0;
      splits += schedule->splits_backward ? 1 : 0;
      for (std::int32_t r = 0; r < plan.pp; ++r) {
        const auto peak = simulator::memory_peak({ran.graph, ran.timeline, ran.prices}, r);
        const auto& mine = memory[static_cast<std::size_t>(r)];
        // A pair that communicates between its bodies runs as two, and what I leaves for W grows body by body there: the graph
        // then needs no more.
        if (schedule->pairs || schedule->splits_backward) EXPECT_GE(mine.short_lived, peak.short_lived) << "rank " << r;
        else EXPECT_EQ(mine.short_lived, peak.short_lived) << "rank " << r;
        EXPECT_EQ(mine.resident, peak.bytes - peak.short_lived) << "rank " << r;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(pairs, 40);
  EXPECT_GT(splits, 40);
}

// What is offloaded travels and waits the same way in both, under every schedule and on one GPU, and takes the same memory of
// GPU and host.
TEST(Pricer, RunsOffloadToTheTimeAndMemoryOfTheGraph) {
  CellRunner runner;
  CellTimes times;
  std::vector<RankMemory> memory;
  Limits limits;
  limits.any_schedule = limits.offload = true;
  int optimizer = 0, weights = 0, activations = 0, pairs = 0, splits = 0;
  auto questions = wide_questions();
  questions.push_back({"llama-3.1-8b", {"h100-sxm", 16}, 4096});
  questions.push_back({"llama-3.2-1b", {"a100-sxm-80", 1}, 2048, "fsdp"});
  questions.push_back({"llama-3.2-1b", {"gb200", 8}, 2048, "deepspeed"});  // over a coherent link
  for (const auto& q : questions) {
    const auto setting = random_plans::setting_of(q.model, q.machine, q.seq, q.framework);
    const Bench bench(setting);
    Pricer pricer(setting, bench);
    Rng rng(22);
    for (int i = 0; i < 40; ++i) {
      const auto plan = random_plans::draw_legal(rng, setting, limits);
      SCOPED_TRACE(q.model + ": " + core::to_text(plan));
      const auto table = random_plans::table_of(plan);
      const auto* schedule = core::find_schedule(plan.schedule);
      optimizer += plan.offload.optimizer ? 1 : 0;
      weights += plan.offload.weights ? 1 : 0;
      activations += plan.offload.activations ? 1 : 0;
      pairs += schedule->pairs ? 1 : 0;
      splits += schedule->splits_backward ? 1 : 0;
      pricer.cell_times(plan, times);
      const auto makespan = runner.run(table, times);
      const auto ran = run_graph(setting, bench, plan, Grain::cell);
      ASSERT_EQ(makespan, ran.timeline.makespan);
      EXPECT_LE(pricer.lower_bound(plan, times), makespan);
      const auto bound = pricer.work_bound(plan);
      EXPECT_LE(schedule->pairs ? std::min(bound.plain, bound.paired) : bound.plain, makespan);
      if (i % 4 == 0) {
        EXPECT_EQ(run_graph(setting, bench, plan, Grain::mixed).timeline.makespan,
                  run_graph(setting, bench, plan, Grain::op).timeline.makespan);
      }
      pricer.memory(plan, table, memory);
      std::vector<double> of_host;
      for (std::int32_t r = 0; r < plan.pp; ++r) {
        const auto peak = simulator::memory_peak({ran.graph, ran.timeline, ran.prices}, r);
        const auto& mine = memory[static_cast<std::size_t>(r)];
        of_host.push_back(mine.host);
        if (schedule->pairs || schedule->splits_backward) EXPECT_GE(mine.short_lived, peak.short_lived) << "rank " << r;
        else EXPECT_EQ(mine.short_lived, peak.short_lived) << "rank " << r;
        EXPECT_EQ(mine.resident, peak.bytes - peak.short_lived) << "rank " << r;
      }
      const auto& framework = setting.framework_of(plan);
      const auto step = simulator::simulate_step(setting, bench, plan, Grain::cell, core::Fold::yes, simulator::Detail::answer);
      EXPECT_NEAR(step.report.host_memory_GiB * core::gibibyte,
                  core::node_host_memory(of_host, plan, setting.cluster.node.gpus, framework), 1e3);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(optimizer, 80);
  EXPECT_GT(weights, 20);
  EXPECT_GT(activations, 150);
  EXPECT_GT(pairs, 30);
  EXPECT_GT(splits, 30);
}

// Fixed rates are a case of their own in the engine, and the plain recurrence of the cell runner.
TEST(Pricer, RunsCellsToTheTimeOfTheGraphWithoutSlowdown) {
  CellRunner runner;
  CellTimes times;
  for_each_plan(
      10,
      12,
      [&](const Setting& setting,
          const Bench& bench,
          Pricer& pricer,
          const core::ParallelPlan& plan) {
        pricer.cell_times(plan, times);
        for (auto* pieces :
             {&times.forward, &times.first_forward, &times.backward, &times.last_backward}) {
          for (auto& stage : *pieces) {
            for (auto& piece : stage) piece.rates = {};
          }
        }
        const auto ran = run_graph(setting, bench, plan, Grain::cell);
        EXPECT_EQ(runner.run(random_plans::table_of(plan), times),
                  simulator::run(ran.graph, simulator::durations_of(ran.prices)).makespan);
      });
}

TEST(Pricer, MemoryIsThatOfTheTimelineAtEachGrain) {
  std::vector<RankMemory> memory;
  for_each_plan(
      12,
      13,
      [&](const Setting& setting,
          const Bench& bench,
          Pricer& pricer,
          const core::ParallelPlan& plan) {
        pricer.memory(plan, random_plans::table_of(plan), memory);
        ASSERT_EQ(memory.size(), static_cast<std::size_t>(plan.pp));
        for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
          const auto ran = run_graph(setting, bench, plan, grain);
          for (std::int32_t r = 0; r < plan.pp; ++r) {
            const auto peak = simulator::memory_peak({ran.graph, ran.timeline, ran.prices}, r);
            const auto& mine = memory[static_cast<std::size_t>(r)];
            EXPECT_EQ(mine.resident + mine.short_lived, peak.bytes)
                << core::name_of(grain) << " rank " << r;
            EXPECT_EQ(mine.short_lived, peak.short_lived) << core::name_of(grain) << " rank " << r;
            EXPECT_EQ(mine.lost, core::fragmentation(peak.short_lived, setting.framework_of(plan)));
          }
        }
      });
}

// The search asks short tables for memory: their steady state is that of the whole.
TEST(Pricer, MemoryOfAShortTableIsThatOfTheWhole) {
  std::vector<RankMemory> whole, by_short;
  int shorter = 0;
  for_each_plan(
      30, 14, [&](const Setting&, const Bench&, Pricer& pricer, const core::ParallelPlan& drawn) {
        auto plan = drawn;
        plan.global_batch *= 4;
        const auto table = simulator::short_table(
            *core::find_schedule(plan.schedule), plan.pp, plan.vpp, plan.micro_batches());
        if (table.micro_batches < plan.micro_batches()) ++shorter;
        pricer.memory(plan, random_plans::table_of(plan), whole);
        pricer.memory(plan, table, by_short);
        for (std::size_t r = 0; r < whole.size(); ++r)
          EXPECT_EQ(whole[r].total(), by_short[r].total()) << r;
      });
  EXPECT_GT(shorter, 100);
}

// And it is a bound worth having: over half of the makespan in most plans.
TEST(Pricer, TheLowerBoundHolds) {
  CellRunner runner;
  CellTimes times;
  std::vector<double> tightness;
  for_each_plan(
      100, 15, [&](const Setting&, const Bench&, Pricer& pricer, const core::ParallelPlan& plan) {
        pricer.cell_times(plan, times);
        const auto makespan = runner.run(random_plans::table_of(plan), times);
        const auto bound = pricer.lower_bound(plan, times);
        EXPECT_LE(bound, makespan);
        EXPECT_GT(bound, 0);
        tightness.push_back(static_cast<double>(bound) / static_cast<double>(makespan));
      });
  std::sort(tightness.begin(), tightness.end());
  EXPECT_GT(tightness[tightness.size() / 4], 0.5);
  fmt::print("lower bound / makespan over {} plans: quartile {:.3f}, median {:.3f}, least {:.3f}\n",
             tightness.size(),
             tightness[tightness.size() / 4],
             tightness[tightness.size() / 2],
             tightness.front());
}

// --- the periodic shortcut -----------------------------------------------------------------------

struct Periodic {
  int asked = 0, at_once = 0, later = 0;
  double answered() const { return static_cast<double>(at_once + later) / asked; }
  void print(const char* what) const {
    fmt::print("{}: the period shows at once in {} and in a longer table in {} of {} plans\n",
               what,
               at_once,
               later,
               asked);
  }
};

// As the search does: from the shortest table that shows the period, at most half of the whole.
void compare_periodic(const core::ParallelPlan& plan,
                      const CellTimes& times,
                      CellRunner& runner,
                      Periodic& count) {
  const auto& schedule = *core::find_schedule(plan.schedule);
  const auto round = simulator::round_of_short_tables(schedule, plan.pp, plan.micro_batches());
  const auto m = plan.micro_batches();
  if (round == 0) return;
  const auto whole = runner.run(random_plans::table_of(plan), times);
  const auto shortest = simulator::short_table(schedule, plan.pp, plan.vpp, m).micro_batches;
  if (2 * shortest > m) return;
  ++count.asked;
  for (auto some = shortest; 2 * some <= m; some += 3 * some / plan.pp * plan.pp) {
    const auto time = runner.run_periodic(schedule.table(plan.pp, plan.vpp, some), round, m, times);
    if (!time) continue;
    EXPECT_EQ(*time, whole) << core::to_text(plan);
    ++(some == shortest ? count.at_once : count.later);
    return;
  }
}

TEST(Periodic, IsTheWholeRunWheneverItAnswersOnRealPlans) {
  CellRunner runner;
  CellTimes times;
  Periodic by_zero[4];
  for_each_plan(
      60, 16, [&](const Setting&, const Bench&, Pricer& pricer, const core::ParallelPlan& drawn) {
        auto plan = drawn;
        plan.global_batch *= 16;
        pricer.cell_times(plan, times);
        compare_periodic(plan, times, runner, by_zero[plan.zero]);
      });
  for (int zero = 0; zero < 4; ++zero) {
    by_zero[zero].print(fmt::format("zero {}", zero).c_str());
    EXPECT_GT(by_zero[zero].asked, 40);
    // Zero 2 on a slow network has no steady state: reductions queue up all through the step.
    EXPECT_GE(by_zero[zero].answered(), 0.9);
  }
}

// Uneven stages, by random numbers: some near each other, some far.
TEST(Periodic, IsTheWholeRunWheneverItAnswersOnRandomTimes) {
  Rng rng(17);
  CellRunner runner;
  Periodic equal, uneven;
  for (int i = 0; i < 600; ++i) {
    core::ParallelPlan plan;
    plan.pp = 1 + static_cast<std::int64_t>(rng() % 8);
    plan.vpp = plan.pp > 1 ? 1 + static_cast<std::int64_t>(rng() % 4) : 1;
    plan.schedule = plan.vpp > 1 ? "interleaved" : "1f1b";
    plan.global_batch = plan.pp * (8 + static_cast<std::int64_t>(rng() % 57));  // up to 512
    const auto n = static_cast<std::size_t>(plan.stages()), pp = static_cast<std::size_t>(plan.pp);
    const bool same = i % 2 == 0;
    const auto draw = [&](std::uint64_t most) { return static_cast<SimTime>(rng() % most); };
    CellTimes times;
    const auto base = 1000 + draw(100000);
    for (auto* stages : {&times.forward, &times.backward}) {
      for (std::size_t s = 0; s < n; ++s) {
        stages->push_back({pieces::piece(
            -1, (stages == &times.forward ? 1 : 2) * (same ? base : base + draw(50000)), -1)});
      }
    }
    times.first_forward.resize(n);
    times.last_backward.resize(n);
    if (rng() % 2 == 0) {
      for (std::size_t s = 0; s < n; ++s) {
        times.first_forward[s] = {
            pieces::piece(draw(1000), times.forward[s][0].compute, -1, {3500, 3900})};
        times.last_backward[s] = {
            pieces::piece(-1, times.backward[s][0].compute, draw(1000), {3500, 3900})};
      }
    }
    times.final_reduce.resize(pp);
    times.final_gather.resize(pp);
    for (std::size_t r = 0; r < pp; ++r) {
      times.send_up.push_back(draw(same ? 500 : 20000));
      times.send_down.push_back(draw(same ? 500 : 20000));
      times.optimizer.push_back(draw(1000));
    }
    times.norm = draw(100);
    compare_periodic(plan, times, runner, same ? equal : uneven);
    if (HasFailure()) break;
  }
  equal.print("equal stages");
  uneven.print("uneven stages");
  for (const auto* count : {&equal, &uneven}) {
    EXPECT_GT(count->asked, 250);
    EXPECT_GE(count->answered(), 0.9);
  }
}

// Sharded and reducing stages by random numbers, with slowdown.
TEST(Periodic, IsTheWholeRunWheneverItAnswersWithDataParallelQueues) {
  Rng rng(18);
  CellRunner runner;
  Periodic sharded, reducing;
  for (int i = 0; i < 400; ++i) {
    core::ParallelPlan plan;
    plan.pp = 1 + static_cast<std::int64_t>(rng() % 4);
    plan.vpp = plan.pp > 1 ? 1 + static_cast<std::int64_t>(rng() % 3) : 1;
    plan.schedule = plan.vpp > 1 ? "interleaved" : "1f1b";
    plan.global_batch = plan.pp * (8 + static_cast<std::int64_t>(rng() % 40));
    const auto n = static_cast<std::size_t>(plan.stages()), pp = static_cast<std::size_t>(plan.pp);
    const auto draw = [&](std::uint64_t most) { return static_cast<SimTime>(1 + rng() % most); };
    CellTimes times;
    times.sharded = i % 2 == 0;
    times.first_forward.resize(n);
    times.last_backward.resize(n);
    times.final_reduce.resize(pp);
    times.final_gather.resize(pp);
    const auto network = static_cast<std::uint64_t>(rng() % 2 == 0 ? 300 : 3000);
    for (std::size_t s = 0; s < n; ++s) {
      auto& forward = times.forward.emplace_back();
      auto& backward = times.backward.emplace_back();
      for (auto bodies = 1 + rng() % 3; bodies > 0; --bodies) {
        forward.push_back(pieces::piece(
            times.sharded ? draw(network) : -1, 500 + draw(500), -1, {3560, 3720}));
        backward.push_back(pieces::piece(times.sharded ? draw(network) : -1,
                                         1000 + draw(1000),
                                         draw(network),
                                         {3700, 3800}));
      }
    }
    times.send_up.assign(pp, draw(50));
    times.send_down.assign(pp, draw(50));
    times.optimizer.assign(pp, 10);
    compare_periodic(plan, times, runner, times.sharded ? sharded : reducing);
    if (HasFailure()) break;
  }
  sharded.print("sharded");
  reducing.print("reducing");
  EXPECT_GT(sharded.asked, 100);
  EXPECT_GT(reducing.asked, 100);
  EXPECT_GE(sharded.answered(), 0.9);
}

}  // namespace
