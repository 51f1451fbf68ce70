#include "simulator/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/timeline.h"

namespace {

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
}  // namespace
