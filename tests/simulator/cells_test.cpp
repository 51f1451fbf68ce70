// Steps of plans with hand-made times: the engine at each grain and the cell runner give one number.
#include "simulator/engine/cells.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/graph/lower.h"
#include "core/timeline.h"
#include "simulator/breakdown.h"
#include "simulator/engine/engine.h"
#include "tests/simulator/pieces.h"

namespace {

using core::Grain;
using core::OpId;
using core::SimTime;
using core::StepGraph;
using simulator::Slowdown;


// --- schedules by hand-made times ----------------------------------------------------------------

// A step of a given plan whose virtual stages have `bodies` equal bodies each: forward one kernel
// "f", backward one kernel "b", one saved tensor of a byte. Everything else takes no time, and each
// body is a bucket.
core::StepWork step_of(const core::ParallelPlan& plan, int bodies = 1) {
  core::StepWork work;
  work.plan = plan;
  work.recipe.compute_format = "bf16";
  work.recipe.parameter_gather_bytes = work.recipe.gradient_reduce_bytes = 2;
  core::Body body;
  for (const bool forward : {true, false}) {
    core::BodyOp op;
    op.spec.name = forward ? "f" : "b";
    op.spec.direction = forward ? core::Direction::forward : core::Direction::backward;
    (forward ? body.forward : body.backward).push_back(op);
  }
  body.saved.push_back({"x", core::Bytes{1.0}});
  body.parameters = 1.0;
  work.bodies = {body};
  work.body_names = {"body"};
  for (std::int64_t s = 0; s < plan.stages(); ++s) {
    work.stages.push_back(
        {std::vector<std::uint16_t>(static_cast<std::size_t>(bodies), 0), bodies});
  }
  return work;
}

// Times by the name of an operation; what is not named takes none.
using Times = std::map<std::string, SimTime>;

std::vector<SimTime> durations_of(const StepGraph& g, const Times& times) {
  std::vector<SimTime> durations(g.specs.size(), 0);
  const auto of = [&](const std::string& name) {
    return times.contains(name) ? times.at(name) : 0;
  };
  for (std::size_t i = 0; i < g.specs.size(); ++i) {
    if (g.specs[i].kind != core::OpKind::cell) {
      durations[i] = of(g.specs[i].name.str());
      continue;
    }
    for (const auto& op : g.chains[static_cast<std::size_t>(g.specs[i].m)])
      durations[i] += of(g.specs[op.spec].name.str());
  }
  return durations;
}

core::ScheduleTable table_of(const core::ParallelPlan& plan) {
  return core::find_schedule(plan.schedule)->table(plan.pp, plan.vpp, plan.micro_batches());
}

core::ParallelPlan plan_of(const std::string& schedule,
                           std::int64_t p,
                           std::int64_t v,
                           std::int64_t m,
                           std::int64_t dp = 1,
                           int zero = 0) {
  core::ParallelPlan plan;
  plan.schedule = schedule;
  plan.pp = p, plan.vpp = v, plan.dp = dp;
  plan.global_batch = m * dp;
  plan.zero = zero;
  return plan;
}

// The times of the same step as the cell runner takes them.
simulator::CellTimes cell_times(const core::ParallelPlan& plan,
                                int bodies,
                                const Times& times,
                                const Slowdown& slowdown) {
  const auto of = [&](const std::string& name) {
    return times.contains(name) ? times.at(name) : 0;
  };
  const auto n = static_cast<std::size_t>(plan.stages()), pp = static_cast<std::size_t>(plan.pp);
  const auto rates = simulator::overlap_rates(slowdown, 1.0);
  const auto reduce = of(plan.zero > 0 ? "gradient_reduce_scatter" : "gradient_all_reduce");
  const auto gather = of("parameter_all_gather");
  const auto bodies_of = [&](SimTime g, SimTime t, SimTime r) {
    return simulator::Pieces(static_cast<std::size_t>(bodies), pieces::piece(g, t, r, rates));
  };
  const auto whole = [&](SimTime t) {
    return simulator::Pieces{pieces::piece(-1, bodies * t, -1, rates)};
  };
  simulator::CellTimes out;
  out.sharded = plan.zero == 3 && plan.dp > 1;
  out.first_forward.resize(n);
  out.last_backward.resize(n);
  out.forward.assign(n, whole(of("f")));
  out.backward.assign(n, whole(of("b")));
  out.final_reduce.resize(pp);
  out.final_gather.resize(pp);
  if (out.sharded) {
    out.forward.assign(n, bodies_of(gather, of("f"), -1));
    out.backward.assign(n, bodies_of(gather, of("b"), reduce));
  } else if (plan.dp > 1) {
    if (plan.zero == 2)
      out.backward.assign(n, bodies_of(-1, of("b"), reduce));
    else if (plan.overlap_gradients)
      out.last_backward.assign(n, bodies_of(-1, of("b"), reduce));
    else
      for (auto& rank : out.final_reduce) rank.assign(static_cast<std::size_t>(plan.vpp), reduce);
    if (plan.zero > 0 && plan.overlap_parameters)
      out.first_forward.assign(n, bodies_of(gather, of("f"), -1));
    if (plan.zero > 0 && !plan.overlap_parameters) {
      for (auto& rank : out.final_gather) rank.assign(static_cast<std::size_t>(plan.vpp), gather);
    }
  }
  out.send_up.assign(pp, of("send_activation"));
  out.send_down.assign(pp, of("send_gradient"));
  out.optimizer.assign(pp, of("adam"));
  out.norm = of("gradient_norm_all_reduce");
  return out;
}

// Makespan by the engine at each grain, folded and not, and by the cell runner, which must be one
// number. Under slowdown a collective that meets a cell's operations one by one is done up to a
// picosecond later for each of them than one that meets the cell.
SimTime makespan(const core::ParallelPlan& plan,
                 const Times& times,
                 int bodies = 1,
                 const Slowdown& slowdown = {}) {
  const auto table = table_of(plan);
  const auto cells = simulator::CellRunner().run(table, cell_times(plan, bodies, times, slowdown));
  for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
    for (const auto fold : {core::Fold::yes, core::Fold::no}) {
      const auto graph = core::lower(step_of(plan, bodies), table, grain, fold);
      const auto by_engine = simulator::run(graph, durations_of(graph, times), slowdown).makespan;
      const auto rounding =
          grain == Grain::cell || slowdown.none() ? 0 : static_cast<SimTime>(graph.size());
      EXPECT_GE(by_engine, cells - rounding) << core::name_of(grain) << ' ' << core::to_text(plan);
      EXPECT_LE(by_engine, cells + rounding) << core::name_of(grain) << ' ' << core::to_text(plan);
    }
  }
  return cells;
}

constexpr SimTime t_f = 30, t_b = 60;  // divisible by each number of virtual stages tried
const Times compute_only = {{"f", t_f}, {"b", t_b}};

// Narayanan et al. 2021 (arXiv 2104.04473), section 2.2: the bubble of 1F1B and of GPipe is
// (p - 1) (t_F + t_B) over the ideal m (t_F + t_B).
TEST(Bubble, OneFOneBAndGpipeTakeMPlusPMinusOneSlots) {
  for (const std::int64_t p : {1, 2, 3, 4, 8}) {
    for (const std::int64_t m : {1, 2, 3, 7, 8, 32}) {
      EXPECT_EQ(makespan(plan_of("1f1b", p, 1, m), compute_only), (m + p - 1) * (t_f + t_b));
      EXPECT_EQ(makespan(plan_of("gpipe", p, 1, m), compute_only), (m + p - 1) * (t_f + t_b));
    }
  }
}

// The same, equation 2: with v chunks the bubble is (p - 1) (t_F + t_B) / v, m a multiple of p.
TEST(Bubble, InterleavingDividesItByTheChunks) {
  for (const std::int64_t p : {2, 3, 4, 8}) {
    for (const std::int64_t v : {2, 3, 5}) {
      for (const std::int64_t m : {p, 2 * p, 6 * p}) {
        const Times a_chunk = {{"f", t_f / v}, {"b", t_b / v}};
        EXPECT_EQ(makespan(plan_of("interleaved", p, v, m), a_chunk),
                  m * (t_f + t_b) + (p - 1) * (t_f + t_b) / v);
      }
    }
  }
}

// One micro-batch: all stages forward and backward in turn, a send between neighbours each way;
// then the norm and the optimizer.
TEST(Bubble, OneMicroBatchGoesThereAndBack) {
  auto times = compute_only;
  times["send_activation"] = 7;
  times["send_gradient"] = 11;
  times["gradient_norm_all_reduce"] = 3;
  times["adam"] = 5;
  for (const std::int64_t p : {1, 2, 4}) {
    EXPECT_EQ(makespan(plan_of("1f1b", p, 1, 1), times),
              p * (t_f + t_b) + (p - 1) * (7 + 11) + 3 + 5);
  }
}

// What stands in memory is what the table says is in flight: one byte a micro-batch.
TEST(Bubble, ActivationsInFlightAreThoseOfTheTable) {
  const std::int64_t p = 4;
  for (const auto grain : {Grain::cell, Grain::op}) {
    for (const std::int64_t m : {2, 4, 9}) {
      for (const std::string schedule : {"1f1b", "gpipe"}) {
        const auto plan = plan_of(schedule, p, 1, m);
        const auto graph = core::lower(step_of(plan), table_of(plan), grain);
        const auto timeline = simulator::run(graph, durations_of(graph, compute_only));
        for (std::int32_t s = 0; s < p; ++s) {
          const auto peak = simulator::memory_peak({graph, timeline, {}}, s);
          EXPECT_EQ(peak.short_lived, schedule == "gpipe" ? m : std::min(m, p - s));
        }
      }
    }
  }
}

// --- data-parallel communication by hand ---------------------------------------------------------

// One stage of n bodies. The reductions of the last backward run bucket by bucket from the end of
// the first body's: the last is exposed, or all but the compute in front when they are longer.
TEST(DataParallel, ReductionsHideBehindTheLastBackward) {
  const std::int64_t m = 3, n = 5;
  auto plan = plan_of("1f1b", 1, 1, m, 2, 0);
  const SimTime compute = m * n * (t_f + t_b);
  EXPECT_EQ(makespan(plan, {{"f", t_f}, {"b", t_b}, {"gradient_all_reduce", t_b - 10}}, n),
            compute + t_b - 10);
  EXPECT_EQ(makespan(plan, {{"f", t_f}, {"b", t_b}, {"gradient_all_reduce", t_b + 10}}, n),
            compute - (n - 1) * t_b + n * (t_b + 10));
  plan.overlap_gradients = false;
  EXPECT_EQ(makespan(plan, {{"f", t_f}, {"b", t_b}, {"gradient_all_reduce", 77}}, n), compute + 77);
}

// Zero 1: the gathers of updated parameters run ahead of the first forward, bucket by bucket.
TEST(DataParallel, GathersHideBehindTheFirstForward) {
  const std::int64_t m = 2, n = 4;
  auto plan = plan_of("1f1b", 1, 1, m, 2, 1);
  const SimTime compute = m * n * (t_f + t_b);
  EXPECT_EQ(makespan(plan, {{"f", t_f}, {"b", t_b}, {"parameter_all_gather", t_f - 5}}, n),
            t_f - 5 + compute);
  EXPECT_EQ(makespan(plan, {{"f", t_f}, {"b", t_b}, {"parameter_all_gather", t_f + 5}}, n),
            n * (t_f + 5) + compute - (n - 1) * t_f);
  plan.overlap_parameters = false;
  EXPECT_EQ(makespan(plan, {{"f", t_f}, {"b", t_b}, {"parameter_all_gather", 55}}, n),
            compute + 55);
}

// Zero 2 reduces each micro-batch's gradients; zero 0 and 1 the sum of them once.
TEST(DataParallel, ZeroTwoReducesEachMicroBatch) {
  const std::int64_t m = 4, n = 3;
  const SimTime r = 200;  // longer than a micro-batch of this stage
  const Times times = {{"f", t_f}, {"b", t_b}, {"gradient_reduce_scatter", r}};
  EXPECT_EQ(makespan(plan_of("1f1b", 1, 1, m, 2, 2), times, n), n * t_f + t_b + m * n * r);
  EXPECT_EQ(makespan(plan_of("1f1b", 1, 1, m, 2, 1), times, n),
            m * n * (t_f + t_b) - (n - 1) * t_b + n * r);
}

// Zero 3: each body's parameters are gathered while the body before it computes, in both
// directions, ahead of that body's reduction: where a gather and a reduction together are shorter
// than a body's forward, the first gather and the last reduction alone are exposed.
TEST(DataParallel, ShardedBodiesAreGatheredAheadInBothDirections) {
  const std::int64_t m = 3, n = 4;
  const SimTime g = 10, r = 15;
  const Times times = {
      {"f", t_f}, {"b", t_b}, {"parameter_all_gather", g}, {"gradient_reduce_scatter", r}};
  EXPECT_EQ(makespan(plan_of("1f1b", 1, 1, m, 2, 3), times, n), g + m * n * (t_f + t_b) + r);
}

// And where it is longer, the queue is never idle: 2 gathers and a reduction a body and
// micro-batch. The last body computes between the last gather and the last reduction.
TEST(DataParallel, ShardedBodiesWaitForTheNetworkWhereItIsSlow) {
  const std::int64_t m = 3, n = 4;
  const SimTime g = 100, r = 150;
  const Times times = {
      {"f", t_f}, {"b", t_b}, {"parameter_all_gather", g}, {"gradient_reduce_scatter", r}};
  // The reduction of the second to last body runs while the last one computes.
  EXPECT_EQ(makespan(plan_of("1f1b", 1, 1, m, 2, 3), times, n), m * n * (2 * g + r));
}

// At most two gathered bodies are alive: the third gather waits until the first body is done.
TEST(DataParallel, AGatherWaitsUntilTheBodyBeforeThePreviousOneIsFreed) {
  const auto plan = plan_of("1f1b", 1, 1, 1, 2, 3);
  const auto graph = core::lower(step_of(plan, 4), table_of(plan), Grain::op);
  const auto t = simulator::run(
      graph, durations_of(graph, {{"f", 100}, {"b", 100}, {"parameter_all_gather", 10}}));
  std::vector<SimTime> gathers;
  for (OpId i = 0; i < graph.size(); ++i) {
    if (graph.key[i].phase == core::Phase::parameter_gather) gathers.push_back(t.start[i]);
  }
  // First body from 10 on; the next two start when the one before the one that computes has ended.
  EXPECT_EQ(gathers, (std::vector<SimTime>{0, 10, 110, 210, 310, 410, 510, 610}));
}

// With slowdown, by random sizes: the engine at the grains and the cell runner are one.
TEST(DataParallel, CellRunnerAgreesWithTheEngineUnderSlowdown) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 200; ++i) {
    const auto p = 1 + static_cast<std::int64_t>(rng() % 4),
               v = 1 + static_cast<std::int64_t>(rng() % 3);
    const auto m = p * (1 + static_cast<std::int64_t>(rng() % 4));
    const std::string schedule = v > 1 && p > 1 ? "interleaved" : rng() % 2 == 0 ? "1f1b" : "gpipe";
    auto plan =
        plan_of(schedule, p, schedule == "interleaved" ? v : 1, m, 2, static_cast<int>(rng() % 4));
    plan.overlap_gradients = rng() % 4 != 0;
    plan.overlap_parameters = rng() % 4 != 0;
    Times times;
    for (const std::string name : {"f",
                                   "b",
                                   "gradient_all_reduce",
                                   "gradient_reduce_scatter",
                                   "parameter_all_gather",
                                   "send_activation",
                                   "send_gradient",
                                   "gradient_norm_all_reduce",
                                   "adam"}) {
      times[name] = static_cast<SimTime>(rng() % 3 == 0 ? rng() % 10 : rng() % 1000);
    }
    makespan(plan, times, 1 + static_cast<int>(rng() % 4), {0.15, 0.1});
    if (HasFailure()) break;
  }
}

}  // namespace
