#include "simulator/engine/engine.h"
#include "tests/simulator/pieces.h"

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
#include "simulator/engine/cells.h"

namespace {

using core::Grain;
using core::OpId;
using core::SimTime;
using core::StepGraph;
using core::Stream;
using simulator::Slowdown;

// --- graphs by hand ------------------------------------------------------------------------------

// Specs are numbered as they stand; their durations are given apart.
constexpr std::string_view one_rank = "rank 1 0 0 0 0 0 0 0 0 0\n";
constexpr std::string_view four_specs =
    "spec memory_bound a bf16 forward flash2 1 0 0 0 1 0 0 0 0 -1\n"
    "spec memory_bound b bf16 forward flash2 1 0 0 0 1 0 0 0 0 -1\n"
    "spec memory_bound c bf16 forward flash2 1 0 0 0 1 0 0 0 0 -1\n"
    "spec memory_bound d bf16 forward flash2 1 0 0 0 1 0 0 0 0 -1\n";

core::Timeline run_text(int ranks,
                        const std::string& ops,
                        const std::vector<SimTime>& durations,
                        const Slowdown& slowdown = {},
                        const std::vector<double>& shares = {}) {
  std::string text;
  for (int r = 0; r < ranks; ++r) text += one_rank;
  return simulator::run(
      core::parse_step_graph(text + std::string(four_specs) + ops), durations, slowdown, shares);
}

TEST(Engine, OperationsOfAQueueRunOneAfterAnother) {
  const auto t = run_text(1,
                          "op 0 0 0 forward 0 0 0 0:compute\n"
                          "op 1 0 0 forward 1 0 0 0:compute\n"
                          "op 2 0 0 forward 2 0 0 0:compute\n",
                          {10, 20, 30, 0});
  EXPECT_EQ(t.start, (std::vector<SimTime>{0, 10, 30}));
  EXPECT_EQ(t.end, (std::vector<SimTime>{10, 30, 60}));
  EXPECT_EQ(t.makespan, 60);
}

// c waits for a (10) on its own queue's head and for b (0 + 20) on the other.
TEST(Engine, AnOperationWaitsForItsQueueAndForItsDependencies) {
  const auto t = run_text(1,
                          "op 0 0 0 forward 0 0 0 0:compute\n"
                          "op 1 0 0 forward 1 0 0 0:tensor\n"
                          "op 2 0 0 forward 2 0 0 0:compute after 1\n"
                          "op 3 0 0 forward 3 0 0 0:tensor after 0\n",
                          {10, 20, 5, 7});
  EXPECT_EQ(t.start, (std::vector<SimTime>{0, 0, 20, 20}));
  EXPECT_EQ(t.end, (std::vector<SimTime>{10, 20, 25, 27}));
}

// The collective starts when the slower rank arrives, and both go on when it is done.
TEST(Engine, ACollectiveStartsWhenItsLastMemberArrives) {
  const auto t = run_text(2,
                          "op 0 0 0 forward 0 0 0 0:compute\n"
                          "op 1 0 0 forward 1 0 0 1:compute\n"
                          "op 2 0 0 forward 2 0 0 0:data 1:data after 0 1\n"
                          "op 3 0 0 forward 3 0 0 0:compute after 2\n"
                          "op 0 0 0 forward 3 0 0 1:compute\n",
                          {10, 25, 40, 1});
  EXPECT_EQ(t.start, (std::vector<SimTime>{0, 0, 25, 65, 25}));
  EXPECT_EQ(t.makespan, 66);
}

// Rates are whole 1/4096 of full speed: 1 / (1 + 0.25) is 3276.8, kept as 3277; 1 / 1.6 is 2560.
// The collective (400 ps) ends after ceil(400 x 4096 / 2560) = 640 ps. By then the kernel (1000 ps)
// has done 640 x 3277 / 4096 = 512.03 ps; the rest takes ceil((1000 x 4096 - 640 x 3277) / 4096) =
// 488.
TEST(Engine, OverlapSlowsBothByRatesOfWhole4096ths) {
  const auto t = run_text(1,
                          "op 0 0 0 forward 0 0 0 0:compute\n"
                          "op 1 0 0 forward 1 0 0 0:data\n",
                          {1000, 400, 0, 0},
                          {0.25, 0.6});
  EXPECT_EQ(t.end[1], 640);
  EXPECT_EQ(t.end[0], 640 + (1000 * 4096 - 640 * 3277 + 4095) / 4096);
  EXPECT_EQ(t.end[0], 1128);
}

// Two at half speed: the collective of 100 ps starts at 50, when the kernel has 150 of 200 ps left.
// Both need twice their time from there; the collective is done at 250 with 50 ps of the kernel
// left.
TEST(Engine, OnlyTheTimeThatBothRunIsSlowed) {
  const auto t = run_text(1,
                          "op 0 0 0 forward 0 0 0 0:tensor\n"
                          "op 1 0 0 forward 1 0 0 0:compute\n"
                          "op 2 0 0 forward 2 0 0 0:data after 0\n",
                          {50, 200, 100, 0},
                          {1.0, 1.0});
  EXPECT_EQ(t.end, (std::vector<SimTime>{50, 250 + 50, 250}));
}

TEST(Engine, TensorParallelAndSendQueuesAreNotSlowed) {
  for (const std::string queue : {"tensor", "send_forward", "send_backward"}) {
    const auto t = run_text(1,
                            "op 0 0 0 forward 0 0 0 0:compute\n"
                            "op 1 0 0 forward 1 0 0 0:" +
                                queue + "\n",
                            {100, 100, 0, 0},
                            {1.0, 1.0});
    EXPECT_EQ(t.end, (std::vector<SimTime>{100, 100})) << queue;
  }
}

// A collective over two ranks is slowed while either computes; only their own kernels are.
TEST(Engine, ACollectiveIsAsSlowAsItsSlowestMember) {
  const auto t = run_text(3,
                          "op 0 0 0 forward 0 0 0 0:compute\n"
                          "op 1 0 0 forward 1 0 0 2:compute\n"
                          "op 2 0 0 forward 2 0 0 0:data 1:data\n",
                          {300, 300, 100, 0},
                          {1.0, 1.0});
  // Half speed until 200, when the kernel of rank 0 has done 100 of 300.
  EXPECT_EQ(t.end, (std::vector<SimTime>{200 + 200, 300, 200}));
}

// A cell whose kernels fill half of its time, c = d = 1: it takes 1 + 1/2 of its time, in which the
// collective does the work of (1/2 x 2 / 2 + 1/2) = 1 of it, that is 2/3 of full speed: 2731 /
// 4096.
TEST(Engine, WhatIsNotKernelsIsNotSlowed) {
  const auto rates = simulator::overlap_rates({1.0, 1.0}, 0.5);
  EXPECT_EQ(rates.compute, std::llround(4096 / 1.5));
  EXPECT_EQ(rates.communication, std::llround(4096 / 1.5));
  EXPECT_EQ(simulator::overlap_rates({1.0, 3.0}, 0.0), simulator::OverlapRates{});
  const auto t = run_text(1,
                          "op 0 0 0 forward 0 0 0 0:compute\n"
                          "op 1 0 0 forward 1 0 0 0:data\n",
                          {3000, 9000, 0, 0},
                          {1.0, 1.0},
                          {0.5, 1.0, 1.0, 1.0});
  const SimTime cell = (3000 * 4096 + 2730) / 2731;
  EXPECT_EQ(t.end[0], cell);
  EXPECT_EQ(t.end[1], cell + (9000 * 4096 - cell * 2731 + 4095) / 4096);
}

// --- against a slow reference --------------------------------------------------------------------

// The meaning of engine.h, written plainly: at each instant start what can start and end what is
// done, until nothing changes; then let all that runs advance to the next end.
class SlowReference {
 public:
  SlowReference(const StepGraph& g,
                const std::vector<SimTime>& durations,
                const Slowdown& slowdown,
                const std::vector<double>& shares)
      : g_(g),
        durations_(durations),
        slowdown_(slowdown),
        shares_(shares),
        state_(g.size(), State::waiting),
        work_(g.size()) {
    t_.start.resize(g.size());
    t_.end.resize(g.size());
  }
  core::Timeline run() {
    while (true) {
      while (start_some() || end_some()) {
      }
      SimTime step = 0;
      for (OpId i = 0; i < g_.size(); ++i) {
        if (state_[i] != State::running) continue;
        const SimTime left = (work_[i] + rate(i) - 1) / rate(i);
        step = step == 0 ? left : std::min(step, left);
      }
      if (step == 0) return t_;
      std::vector<std::int64_t> rates(g_.size(), 0);
      for (OpId i = 0; i < g_.size(); ++i) rates[i] = state_[i] == State::running ? rate(i) : 0;
      for (OpId i = 0; i < g_.size(); ++i) work_[i] -= step * rates[i];
      now_ += step;
    }
  }

 private:
  enum class State { waiting, running, done };
  std::vector<std::uint32_t> queues(OpId i) const {
    return {g_.queues.begin() + g_.queue_begin[i], g_.queues.begin() + g_.queue_begin[i + 1]};
  }
  bool share_a_queue(OpId i, OpId j) const {
    for (const auto a : queues(i)) {
      for (const auto b : queues(j)) {
        if (a == b) return true;
      }
    }
    return false;
  }
  bool can_start(OpId i) const {
    for (auto d = g_.dependency_begin[i]; d < g_.dependency_begin[i + 1]; ++d) {
      if (state_[g_.dependencies[d]] != State::done) return false;
    }
    for (OpId j = 0; j < i; ++j) {
      if (state_[j] != State::done && share_a_queue(i, j)) return false;
    }
    return true;
  }
  bool start_some() {
    bool any = false;
    for (OpId i = 0; i < g_.size(); ++i) {
      if (state_[i] != State::waiting || !can_start(i)) continue;
      state_[i] = State::running;
      t_.start[i] = now_;
      work_[i] = durations_[g_.spec[i]] * 4096;
      any = true;
    }
    return any;
  }
  bool end_some() {
    bool any = false;
    for (OpId i = 0; i < g_.size(); ++i) {
      if (state_[i] != State::running || work_[i] > 0) continue;
      state_[i] = State::done;
      t_.end[i] = now_;
      t_.makespan = std::max(t_.makespan, now_);
      any = true;
    }
    return any;
  }
  std::int64_t rate(OpId i) const {
    std::int64_t slowest = 4096;
    for (const auto q : queues(i)) {
      const auto rank = q / core::streams_per_rank, stream = q % core::streams_per_rank;
      for (OpId j = 0; j < g_.size(); ++j) {
        if (state_[j] != State::running) continue;
        for (const auto other : queues(j)) {
          if (other / core::streams_per_rank != rank) continue;
          const auto beside = other % core::streams_per_rank;
          if (stream == index(Stream::compute) && beside == index(Stream::data))
            slowest = std::min(slowest, of_kernel(i));
          if (stream == index(Stream::data) && beside == index(Stream::compute))
            slowest = std::min(slowest, of_collective(j));
        }
      }
    }
    return slowest;
  }
  static std::uint32_t index(Stream stream) { return static_cast<std::uint32_t>(stream); }
  double share(OpId i) const { return shares_.empty() ? 1.0 : shares_[g_.spec[i]]; }
  std::int64_t of_kernel(OpId i) const {
    return std::llround(4096.0 / (1.0 + share(i) * slowdown_.compute));
  }
  std::int64_t of_collective(OpId beside) const {
    const double k = share(beside), c = slowdown_.compute, d = slowdown_.communication;
    return std::llround(4096.0 * (k * (1.0 + c) / (1.0 + d) + 1.0 - k) / (1.0 + k * c));
  }

  const StepGraph& g_;
  const std::vector<SimTime>& durations_;
  const Slowdown slowdown_;
  const std::vector<double>& shares_;
  std::vector<State> state_;
  std::vector<std::int64_t> work_;
  core::Timeline t_;
  SimTime now_ = 0;
};

// A random graph: kernels, collectives over some ranks, sends, a few dependencies each.
StepGraph random_graph(std::mt19937_64& rng, int ops) {
  StepGraph g;
  g.ranks = 1 + static_cast<std::int32_t>(rng() % 4);
  g.multiplicity.assign(static_cast<std::size_t>(g.ranks), 1);
  g.resident.assign(static_cast<std::size_t>(g.ranks),
                    std::vector<std::int64_t>(core::memory_terms, 0));
  for (int i = 0; i < 8; ++i) g.specs.push_back({});
  for (OpId i = 0; i < static_cast<OpId>(ops); ++i) {
    g.spec.push_back(static_cast<std::uint32_t>(rng() % g.specs.size()));
    g.key.push_back({0, 0, core::Phase::forward, static_cast<std::uint16_t>(i), 0});
    g.recompute.push_back(0);
    const auto stream =
        static_cast<std::uint32_t>(rng() % 3 == 0 ? 0 : rng() % core::streams_per_rank);
    const auto one = rng() % static_cast<std::uint64_t>(g.ranks);
    for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(g.ranks); ++r) {
      const bool collective = stream == 1 || stream == 2;
      if (r == one || (collective && rng() % 2 == 0)) {
        g.queues.push_back(static_cast<std::uint32_t>(r) * core::streams_per_rank + stream);
      }
    }
    g.queue_begin.push_back(static_cast<std::uint32_t>(g.queues.size()));
    for (auto d = i > 0 ? rng() % 3 : 0; d > 0; --d)
      g.dependencies.push_back(static_cast<OpId>(rng() % i));
    g.dependency_begin.push_back(static_cast<std::uint32_t>(g.dependencies.size()));
  }
  return g;
}

std::vector<SimTime> random_durations(std::mt19937_64& rng, const StepGraph& g) {
  std::vector<SimTime> durations;
  // Few distinct values, so that events tie; some take no time.
  for (std::size_t i = 0; i < g.specs.size(); ++i) {
    durations.push_back(rng() % 2 == 0 ? static_cast<SimTime>(rng() % 5) * 100
                                       : static_cast<SimTime>(rng() % 1000));
  }
  return durations;
}

TEST(EngineReference, AgreesAtFixedRatesToThePicosecond) {
  std::mt19937_64 rng(7);
  for (int i = 0; i < 300; ++i) {
    const auto g = random_graph(rng, 40);
    const auto durations = random_durations(rng, g);
    ASSERT_EQ(simulator::run(g, durations), SlowReference(g, durations, {}, {}).run())
        << core::to_text(g);
  }
}

TEST(EngineReference, AgreesUnderSlowdownToThePicosecond) {
  std::mt19937_64 rng(8);
  int slowed = 0;
  for (int i = 0; i < 400; ++i) {
    const auto g = random_graph(rng, 40);
    const auto durations = random_durations(rng, g);
    const Slowdown slowdown{static_cast<double>(rng() % 100) / 100.0,
                            static_cast<double>(rng() % 100) / 100.0};
    std::vector<double> shares;
    if (i % 2 == 0) {
      for (std::size_t s = 0; s < g.specs.size(); ++s)
        shares.push_back(static_cast<double>(rng() % 101) / 100.0);
    }
    const auto t = simulator::run(g, durations, slowdown, shares);
    ASSERT_EQ(t, SlowReference(g, durations, slowdown, shares).run()) << core::to_text(g);
    if (t != simulator::run(g, durations)) ++slowed;
  }
  EXPECT_GT(slowed, 300);
}

TEST(EngineReference, TheSameTimelineIsReusedWithoutTraces) {
  std::mt19937_64 rng(9);
  core::Timeline reused;
  for (int i = 0; i < 20; ++i) {
    const auto g = random_graph(rng, 10 + static_cast<int>(rng() % 40));
    const auto durations = random_durations(rng, g);
    simulator::run_into(reused, g, durations, Slowdown{0.3, 0.2});
    EXPECT_EQ(reused, simulator::run(g, durations, Slowdown{0.3, 0.2}));
  }
}

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
