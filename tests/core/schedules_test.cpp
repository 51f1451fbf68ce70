// The tables of core/plan/schedules against what their papers publish, under the papers'
// assumptions: equal stages, no communication.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/ideal_run.h"
#include "core/plan/schedule.h"
#include "core/plan/schedules/interleaved_order.h"
#include "tests/core/schedule_tables.h"

namespace core {
namespace {

using schedule_tables::grid;
using schedule_tables::table_of;

std::string sizes(std::string_view name, std::int64_t p, std::int64_t v, std::int64_t m) {
  return std::string(name) + " p=" + std::to_string(p) + " v=" + std::to_string(v) +
         " m=" + std::to_string(m);
}

// Forward and whole backward of a stage.
struct Pair {
  std::int64_t forward, backward;
};
const std::vector<Pair> some_times{{1, 1}, {1, 2}, {2, 3}, {5, 7}, {3, 2}};

// --- all of them ---------------------------------------------------------------------------------

TEST(Schedules, AllRunOverAGridOfSizes) {
  // One stage a rank: gpipe, 1f1b, zb-h1, zb-h2 and 1f1b-a2a with each of 5 p and 11 m.
  EXPECT_GT(grid().size(), 5U * 5 * 11);
  for (const auto& [schedule, p, v, m] : grid()) {
    const auto table = schedule->table(p, v, m);
    EXPECT_EQ(why_not_executable(table), std::nullopt) << sizes(schedule->name, p, v, m);
    EXPECT_EQ(table.micro_batches, m);
    EXPECT_EQ(table.pp, p);
    EXPECT_EQ(table.placement, schedule->placement);
    EXPECT_EQ(table.vpp, schedule->placement == Placement::both_ways ? 2 : v);
  }
}

TEST(Schedules, AllRunWithEveryNumberOfMicroBatches) {
  for (const auto* schedule : schedules::all()) {
    const auto v = schedule->stages_a_rank.value_or(3);
    int tried = 0;
    for (const std::int64_t p : {2, 4, 5, 6}) {
      for (std::int64_t m = 1; m <= 40; ++m) {
        if (schedule->why_not(p, v, m)) continue;
        ++tried;
        EXPECT_EQ(why_not_executable(schedule->table(p, v, m)), std::nullopt)
            << sizes(schedule->name, p, v, m);
      }
    }
    EXPECT_GT(tried, 40) << schedule->name;
  }
}

TEST(Schedules, SayWhatTheirTablesHave) {
  for (const auto& [schedule, p, v, m] : grid()) {
    if (p < 3 || m < 2 * p) continue;
    bool split = false, pairs = false;
    for (const auto& program : schedule->table(p, v, m).ranks) {
      for (const auto& a : program) {
        split = split || a.kind == Action::Kind::weight_gradient;
        pairs = pairs || a.with_next;
      }
    }
    EXPECT_EQ(split, schedule->splits_backward) << sizes(schedule->name, p, v, m);
    EXPECT_EQ(pairs, schedule->pairs) << sizes(schedule->name, p, v, m);
    if (schedule->stages_a_rank) {
      EXPECT_EQ(*schedule->stages_a_rank, v);
    }
  }
}

TEST(Schedules, AreFoundByNameAndRefuseSizesTheyAreNotMadeFor) {
  EXPECT_EQ(find_schedule("zigzag"), nullptr);
  for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-h2", "1f1b-a2a"}) {
    EXPECT_EQ(find_schedule(name)->why_not(4, 2, 8),
              "schedule " + std::string(name) + " has one stage a rank, not vpp=2");
  }
  for (const char* name : {"zb-v", "v-min", "v-half", "dualpipev"}) {
    EXPECT_EQ(find_schedule(name)->why_not(4, 1, 8),
              "schedule " + std::string(name) + " has two stages a rank, not vpp=1");
  }
  for (const char* name : {"interleaved", "interleaved-a2a"}) {
    EXPECT_EQ(find_schedule(name)->why_not(4, 2, 3),
              "3 micro-batches are fewer than pp=4 (schedule " + std::string(name) + ")");
    EXPECT_EQ(find_schedule(name)->why_not(4, 2, 10), std::nullopt);
    EXPECT_NE(find_schedule(name)->why_not(4, 1, 8), std::nullopt);
    EXPECT_NE(find_schedule(name)->why_not(1, 2, 8), std::nullopt);
  }
  const auto* dualpipe = find_schedule("dualpipe");
  EXPECT_EQ(dualpipe->why_not(3, 1, 8),
            "schedule dualpipe needs an even number of ranks, not pp=3");
  EXPECT_EQ(dualpipe->why_not(4, 1, 9),
            "schedule dualpipe needs an even number of micro-batches, not 9");
  EXPECT_EQ(dualpipe->why_not(4, 1, 6),
            "schedule dualpipe needs 2 pp=8 micro-batches or more, not 6");
  EXPECT_EQ(find_schedule("dualpipev")->why_not(4, 2, 7),
            "schedule dualpipev needs 2 pp=8 micro-batches or more, not 7");
}

// --- gpipe, 1f1b, interleaved --------------------------------------------------------------------

TEST(OneFOneB, OnTwoRanksReadsAsInThePapers) {
  EXPECT_EQ(to_text(table_of("1f1b", 2, 1, 3)),
            "0F0 0F1 0B0 0F2 0B1 0B2\n"
            "1F0 1B0 1F1 1B1 1F2 1B2\n");
  EXPECT_EQ(to_text(table_of("gpipe", 2, 1, 2)),
            "0F0 0F1 0B0 0B1\n"
            "1F0 1F1 1B0 1B1\n");
}

// (m + p - 1)(t_F + t_B): Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1.
TEST(OneFOneB, TakesAsLongAsItsPaperSays) {
  for (const auto& [schedule, p, v, m] : grid()) {
    if (schedule->name != "1f1b" && schedule->name != "gpipe") continue;
    for (const auto& [f, b] : some_times) {
      const auto run = ideal_run(schedule->table(p, v, m), IdealStage{.forward = f, .backward = b});
      EXPECT_EQ(run.makespan, (m + p - 1) * (f + b)) << sizes(schedule->name, p, v, m);
    }
  }
}

// Stage s of 1F1B holds min(m, p - s) micro-batches (arXiv 2104.04473, section 2.2.1).
TEST(OneFOneB, HoldsAsManyMicroBatchesAsStagesAreLeft) {
  const std::vector<std::int64_t> eight{8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_EQ(most_in_flight(table_of("1f1b", 8, 1, 32)), eight);  // field case F44
  for (const std::int64_t p : {1, 2, 5, 8}) {
    for (const std::int64_t m : {1, 3, 8, 20}) {
      const auto most = most_in_flight(table_of("1f1b", p, 1, m));
      for (std::int64_t s = 0; s < p; ++s)
        EXPECT_EQ(most[static_cast<std::size_t>(s)], std::min(m, p - s));
    }
  }
}

TEST(Gpipe, HoldsAllMicroBatches) {
  for (const std::int64_t m : {1, 3, 20}) {
    EXPECT_EQ(most_in_flight(table_of("gpipe", 4, 1, m)), std::vector<std::int64_t>(4, m));
  }
}

// Narayanan et al. 2021 (arXiv 2104.04473), figure 4: two chunks a rank, groups of p micro-batches.
// Rank r warms up with 2 (p - r - 1) + (v - 1) p forwards: 4 and 2.
TEST(Interleaved, OnTwoRanksIsMegatrons) {
  EXPECT_EQ(to_text(table_of("interleaved", 2, 2, 2)),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
}

// Megatron-LM refuses a group smaller than p or larger than m, and a last group smaller than p but
// not empty; the least that it takes. 10 = 5 + 5, 11 = 6 + 5 (with 5, one is left), 7 = 7 on 4.
TEST(Interleaved, TakesTheLeastGroupsThatMegatronTakes) {
  EXPECT_EQ(schedules::interleaved_group(4, 8), 4);
  EXPECT_EQ(schedules::interleaved_group(4, 10), 5);
  EXPECT_EQ(schedules::interleaved_group(4, 11), 6);
  EXPECT_EQ(schedules::interleaved_group(4, 7), 7);
  for (std::int64_t p = 2; p <= 8; ++p) {
    for (std::int64_t m = p; m <= 60; ++m) {
      const auto n = schedules::interleaved_group(p, m);
      const auto legal = [&](std::int64_t group) { return m % group == 0 || m % group >= p; };
      EXPECT_TRUE(p <= n && n <= m && legal(n));
      for (auto less = p; less < n; ++less) EXPECT_FALSE(legal(less));
      if (m % p == 0) {
        EXPECT_EQ(n, p);
      }
    }
  }
}

// Rank 1 of 2, 3 micro-batches in one group, warm-up 2 (p - r - 1) + (v - 1) N = 3.
TEST(Interleaved, HasOddNumbersOfMicroBatchesToo) {
  EXPECT_EQ(to_text(table_of("interleaved", 2, 2, 3)),
            "0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2\n"
            "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1B0 1B1 1B2\n");
}

// The bubble is that of 1F1B divided by v: (p - 1) times F and B of one of the rank's v stages.
TEST(Interleaved, DividesTheBubbleByTheStagesOfARank) {
  int tried = 0;
  for (const auto& [schedule, p, v, m] : grid()) {
    if (schedule->name != "interleaved") continue;
    for (const auto& [f, b] : some_times) {
      const auto run = ideal_run(schedule->table(p, v, m), IdealStage{.forward = f, .backward = b});
      const auto one_f_one_b = (p - 1) * v * (f + b);
      for (std::int64_t r = 0; r < p; ++r) {
        EXPECT_LE(run.bubble(r), one_f_one_b) << sizes(schedule->name, p, v, m);
        EXPECT_EQ(run.bubble(r) * v, one_f_one_b) << sizes(schedule->name, p, v, m);
      }
    }
    ++tried;
  }
  EXPECT_GT(tried, 80);
}

// Rank r warms up with 2 (p - r - 1) + (v - 1) N forwards, and one more follows before the first
// backward; a rank has m v cells at most. On the first rank with N = p that is 2 (p - 1) +
// (v - 1) p + 1, or p v (1 + (p - 1) / (p v)) of its layers' share (arXiv 2205.05198, section
// 4.2.3).
TEST(Interleaved, HoldsItsWarmUpAndOneMore) {
  for (const auto& [schedule, p, v, m] : grid()) {
    if (schedule->name != "interleaved") continue;
    const auto run = ideal_run(schedule->table(p, v, m), IdealStage{});
    const auto n = schedules::interleaved_group(p, m);
    for (std::int64_t r = 0; r < p; ++r) {
      EXPECT_EQ(run.ranks[static_cast<std::size_t>(r)].peak,
                std::min(m * v, 2 * (p - r - 1) + (v - 1) * n + 1));
    }
    if (n == p && m > p) {
      EXPECT_EQ(run.ranks[0].peak, p * v + p - 1);
    }
  }
}

// By chunk: a chunk's micro-batches go in by groups of p, so that none has more in flight than the
// rank; together the most of each are no less than the rank's most.
TEST(Interleaved, ChunksAddUpToTheirRank) {
  const std::int64_t p = 4, v = 3;
  const auto table = table_of("interleaved", p, v, 16);
  const auto most = most_in_flight(table);
  const auto run = ideal_run(table, IdealStage{});
  for (std::int64_t r = 0; r < p; ++r) {
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < v; ++c) sum += most[static_cast<std::size_t>(c * p + r)];
    EXPECT_GE(sum, run.ranks[static_cast<std::size_t>(r)].peak);
  }
  EXPECT_EQ(most.back(), 1);  // the last stage goes backward at once
}

// --- zero bubble ---------------------------------------------------------------------------------
// Zero Bubble Pipeline Parallelism, arXiv 2401.10241, table 2 (B is the input gradient, our I):
//   1F1B   (p - 1)(T_F + T_B + T_W)     p M_B
//   ZB-H1  (p - 1)(T_F + T_B - T_W)     p M_B
//   ZB-H2  (p - 1)(T_F + T_B - 2 T_W)   (2 p - 1) M_B
// for T_F = T_B = T_W; the i-th worker (from 1) holds (p - i + 1) M_B + (i - 1) M_W with ZB-H1 and
// (2 p - 2 i + 1) M_B + (2 i - 2) M_W with ZB-H2 (section 2.3).

// All passes of time t, M_B = 5, M_W = 2.
IdealStage equal_passes(std::int64_t t) {
  return {.forward = t,
          .backward = 2 * t,
          .input_gradient = t,
          .weight_gradient = t,
          .activation = 5,
          .kept_for_weight = 2};
}

TEST(ZeroBubble, H1OnTwoRanksPutsOffOneWeightGradientOnTheSecond) {
  EXPECT_EQ(to_text(table_of("zb-h1", 2, 1, 3)),
            "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
            "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2\n");
}

TEST(ZeroBubble, H2OnTwoRanksFillsTheWarmUp) {
  EXPECT_EQ(to_text(table_of("zb-h2", 2, 1, 4)),
            "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
            "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3\n");
}

TEST(ZeroBubble, H1HasAThirdOfTheBubbleOfOneFOneBInItsMemory) {
  for (std::int64_t p = 1; p <= 12; ++p) {
    for (const auto m : {p, p + 1, 2 * p, 3 * p + 1, std::int64_t{40}}) {
      for (const std::int64_t t : {1, 3}) {
        const auto run = ideal_run(table_of("zb-h1", p, 1, m), equal_passes(t));
        for (std::int64_t r = 0; r < p; ++r) {
          EXPECT_EQ(run.bubble(r), (p - 1) * (t + t - t)) << sizes("zb-h1", p, 1, m);
          EXPECT_EQ(run.ranks[static_cast<std::size_t>(r)].peak, (p - r) * 5 + r * 2)
              << sizes("zb-h1", p, 1, m);
        }
        const auto whole = ideal_run(table_of("1f1b", p, 1, m), equal_passes(t));
        EXPECT_EQ(whole.bubble(0), (p - 1) * (t + t + t));
        EXPECT_EQ(whole.ranks[0].peak, p * 5);
      }
      // The same number of micro-batches in flight on every rank (section 2.1).
      EXPECT_EQ(most_in_flight(table_of("zb-h1", p, 1, m)),
                std::vector<std::int64_t>(static_cast<std::size_t>(p), p));
    }
  }
}

// Without bubble between a rank's own first and last cell, which is what counts with optimizer
// post-validation; a step that all ranks end together waits (p - 1) T_F for the last.
TEST(ZeroBubble, H2HasNoBubbleWhenStepsNeedNotEndTogether) {
  for (std::int64_t p = 1; p <= 12; ++p) {
    for (const auto m : {2 * p - 1, 2 * p, 3 * p + 1, std::int64_t{40}}) {
      for (const std::int64_t t : {1, 3}) {
        const auto run = ideal_run(table_of("zb-h2", p, 1, m), equal_passes(t));
        for (std::int64_t r = 0; r < p; ++r) {
          const auto& rank = run.ranks[static_cast<std::size_t>(r)];
          EXPECT_EQ(rank.bubble_of_its_own(), (p - 1) * (t + t - 2 * t));
          EXPECT_EQ(run.bubble(r), (p - 1) * t);
          EXPECT_EQ(rank.start, r * t);  // a parallelogram
          EXPECT_EQ(rank.end, rank.start + 3 * m * t);
          EXPECT_EQ(rank.peak, (2 * (p - r) - 1) * 5 + 2 * r * 2) << sizes("zb-h2", p, 1, m);
        }
        EXPECT_EQ(run.ranks[0].peak, (2 * p - 1) * 5);
      }
    }
  }
}

// Zero bubble and the p M_B of 1F1B on every rank (arXiv 2401.10241, section 6): two stages of half
// a rank's layers, each of half its activations.
TEST(ZeroBubble, VHasNoBubbleInTheMemoryOfOneFOneB) {
  for (std::int64_t p = 1; p <= 12; ++p) {
    for (const auto m : {2 * p - 1, 2 * p, 3 * p + 1, std::int64_t{40}}) {
      for (const std::int64_t t : {1, 3}) {
        const auto run = ideal_run(table_of("zb-v", p, 2, m), equal_passes(t));
        for (std::int64_t r = 0; r < p; ++r) {
          const auto& rank = run.ranks[static_cast<std::size_t>(r)];
          EXPECT_EQ(rank.bubble_of_its_own(), 0) << sizes("zb-v", p, 2, m);
          EXPECT_EQ(rank.start, r * t);
          EXPECT_EQ(rank.peak, 2 * p * 5) << sizes("zb-v", p, 2, m);
        }
      }
    }
  }
}

TEST(ZeroBubble, VHoldsNoMoreWithFewMicroBatches) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (std::int64_t m = 1; m < 2 * p - 1; ++m) {
      const auto run = ideal_run(table_of("zb-v", p, 2, m), equal_passes(1));
      for (const auto& rank : run.ranks) EXPECT_LE(rank.peak, 2 * std::min(m, p) * 5);
    }
  }
}

// Pipeline Parallelism with Controllable Memory, arXiv 2405.15362, for T_F = T_B = T_W (the table
// of huggingface.co/spaces/sail/pipeline-parallelism-with-controllable-memory): bubble about p / m
// of the step with 1F1B, 2 p / 3 m with V-Min, p / 2 m with V-Half; activations of p, (p + 4) / 3
// and (p + 2) / 2 micro-batches, rounded down. A micro-batch's step of a rank is 6 passes of a
// stage.
TEST(ControllableMemory, HasThePublishedBubbleAndMemory) {
  for (std::int64_t p = 2; p <= 24; ++p) {
    for (const auto m : {p, 2 * p + 1, 4 * p}) {
      // A micro-batch of a rank has two stages.
      const auto stage = [](std::int64_t kept) {
        return IdealStage{.forward = 1,
                          .input_gradient = 1,
                          .weight_gradient = 1,
                          .activation = 1,
                          .kept_for_weight = kept};
      };
      const auto peak = [](const IdealRun& run) {
        std::int64_t most = 0;
        for (const auto& rank : run.ranks) most = std::max(most, rank.peak);
        return most;
      };
      const auto least = ideal_run(table_of("v-min", p, 2, m), stage(1));
      EXPECT_LE(least.bubble(0), 4 * p) << sizes("v-min", p, 2, m);  // 2 p / 3 of 6
      EXPECT_LE(peak(least), 2 * ((p + 4) / 3)) << sizes("v-min", p, 2, m);
      const auto half = ideal_run(table_of("v-half", p, 2, m), stage(0));
      EXPECT_LE(half.bubble(0), 3 * p) << sizes("v-half", p, 2, m);  // p / 2 of 6
      EXPECT_LE(peak(half), 2 * ((p + 2) / 2)) << sizes("v-half", p, 2, m);
      // What two stages keep for W at most, on top.
      EXPECT_LE(peak(ideal_run(table_of("v-half", p, 2, m), stage(1))), 2 * ((p + 2) / 2) + 2);
    }
  }
}

// --- dualpipe ------------------------------------------------------------------------------------
// The table of github.com/deepseek-ai/DualPipe (also DeepSeek-V3, arXiv 2412.19437, table 2), PP
// stages, B the whole backward:
//   DualPipe   (PP / 2 - 1)(F&B + B - 3 W)   parameters 2 x   activations PP + 1   PP devices
//   DualPipeV  (PP / 2 - 1)(F&B + B - 3 W)   parameters 2 x   activations PP + 1   PP / 2 devices

// Written by hand from the steps of the published code: near 2 forwards, and so on.
TEST(DualPipe, OnTwoRanksIsThePublishedOrder) {
  EXPECT_EQ(to_text(table_of("dualpipe", 2, 1, 4)),
            "placement both_ways\n"
            "0F0 3F2 0F1 3B2 (3F3+0B0) 3B3 0I1 0W1\n"
            "2F2 1F0 2F3 1B0 (1F1+2B2) 1B1 2I3 2W3\n");
  EXPECT_EQ(to_text(table_of("dualpipev", 1, 2, 2)),
            "placement v\n"
            "0F0 1F0 0F1 1B0 (1F1+0B0) 1B1 0I1 0W1\n");
}

// Times of F, I, W and of the pair F&B, with B = I + W.
struct Passes {
  std::int64_t forward, input_gradient, weight_gradient, pair;
};
const std::vector<Passes> some_passes{
    {1, 1, 1, 3}, {2, 2, 2, 4}, {2, 2, 2, 5}, {2, 2, 2, 6}, {10, 10, 9, 24}, {10, 10, 7, 27}};

IdealStage stage_of(const Passes& x) {
  return {.forward = x.forward,
          .backward = x.input_gradient + x.weight_gradient,
          .input_gradient = x.input_gradient,
          .weight_gradient = x.weight_gradient,
          .activation = 1,
          .kept_for_weight = 1,
          .with_backward = x.pair};
}

// The innermost ranks, which overlap the most, have the published bubble where I takes as long as F
// and W no longer. The others have fewer pairs, so that they are longer at work in the same step
// where a pair saves time.
TEST(DualPipe, HasThePublishedBubble) {
  for (const std::int64_t stages : {2, 4, 6, 8, 16}) {
    for (const auto each_way : {stages, stages + 1, stages + 6}) {
      for (const auto& x : some_passes) {
        const auto b = x.input_gradient + x.weight_gradient;
        const auto bubble = (stages / 2 - 1) * (x.pair + b - 3 * x.weight_gradient);
        const auto saved = x.forward + b - x.pair;
        const auto check = [&](const ScheduleTable& table, std::int64_t ranks) {
          const auto run = ideal_run(table, stage_of(x));
          EXPECT_EQ(run.bubble(stages / 2 - 1), bubble) << stages << " " << each_way;
          for (std::int64_t r = 0; r < ranks; ++r) {
            const auto outside = stages / 2 - 1 - std::min(r, stages - 1 - r);
            EXPECT_LE(run.bubble(r), bubble);
            EXPECT_GE(run.bubble(r), bubble - outside * saved);
          }
        };
        check(table_of("dualpipe", stages, 1, 2 * each_way), stages);
        check(table_of("dualpipev", stages / 2, 2, each_way), stages / 2);
      }
    }
  }
}

TEST(DualPipe, HoldsOneMicroBatchMoreThanStages) {
  for (const std::int64_t stages : {2, 4, 6, 8, 16}) {
    for (const auto each_way : {stages, stages + 5}) {
      const auto both =
          ideal_run(table_of("dualpipe", stages, 1, 2 * each_way), stage_of({2, 2, 2, 5}));
      const auto v =
          ideal_run(table_of("dualpipev", stages / 2, 2, each_way), stage_of({2, 2, 2, 5}));
      for (const auto& rank : both.ranks) EXPECT_EQ(rank.peak, stages + 1);
      for (const auto& rank : v.ranks) EXPECT_EQ(rank.peak, stages + 1);
    }
  }
}

// The two halves of DualPipe mirror each other; DualPipeV is the first half, its far direction the
// way back up.
TEST(DualPipe, IsTwoHalvesAndDualPipeVOneOfThem) {
  for (const std::int64_t half : {1, 2, 3, 4}) {
    const auto p = 2 * half, each_way = p + 3;
    const auto both = table_of("dualpipe", p, 1, 2 * each_way);
    const auto v = table_of("dualpipev", half, 2, each_way);
    for (std::int64_t r = 0; r < half; ++r) {
      auto first = both.ranks[static_cast<std::size_t>(r)];
      auto mirror = both.ranks[static_cast<std::size_t>(p - 1 - r)];
      for (auto& a : mirror) {
        a.stage = static_cast<std::uint16_t>((a.stage + p) % (2 * p));
        a.micro_batch = static_cast<std::uint32_t>((a.micro_batch + each_way) % (2 * each_way));
      }
      EXPECT_EQ(first, mirror);
      for (auto& a : first) {
        if (a.stage < p) continue;
        a.stage = static_cast<std::uint16_t>(a.stage - p);
        a.micro_batch -= static_cast<std::uint32_t>(each_way);
      }
      EXPECT_EQ(first, v.ranks[static_cast<std::size_t>(r)]);
    }
  }
}

// --- overlapped all-to-all -----------------------------------------------------------------------

TEST(OverlappedAllToAll, OnTwoRanksPairsAForwardWithABackward) {
  EXPECT_EQ(to_text(table_of("1f1b-a2a", 2, 1, 4)),
            "0F0 0F1 0F2 (0F3+0B0) 0B1 0B2 0B3\n"
            "1F0 (1F1+1B0) (1F2+1B1) (1F3+1B2) 1B3\n");
  EXPECT_EQ(to_text(table_of("1f1b-a2a", 1, 1, 2)), "0F0 (0F1+0B0) 0B1\n");
  // Megatron-LM: the warm-up of interleaved 1F1B, 2 (p - r - 1) + (v - 1) p, and one forward.
  EXPECT_EQ(to_text(table_of("interleaved-a2a", 2, 2, 4)),
            "0F0 0F1 2F0 2F1 0F2 (0F3+2B0) (2F2+2B1) (2F3+0B0) 0B1 2B2 2B3 0B2 0B3\n"
            "1F0 1F1 3F0 (3F1+3B0) (1F2+3B1) (1F3+1B0) (3F2+1B1) (3F3+3B2) 3B3 1B2 1B3\n");
}

// The last rank is never idle between its first cell and its last: its m - 1 pairs follow each
// other, before them p forwards and after them p backwards of the pipeline.
TEST(OverlappedAllToAll, LeavesNoBubbleBetweenPairs) {
  for (const std::int64_t p : {1, 2, 3, 4, 8}) {
    for (const std::int64_t m : {1, 2, 4, 7, 8, 16, 31}) {
      for (const auto& x : some_passes) {
        const auto b = x.input_gradient + x.weight_gradient;
        const auto run = ideal_run(table_of("1f1b-a2a", p, 1, m), stage_of(x));
        EXPECT_EQ(run.makespan, p * (x.forward + b) + (m - 1) * x.pair) << p << " " << m;
        // 1F1B's bubble.
        EXPECT_EQ(run.bubble(p - 1), (p - 1) * (x.forward + b));
        for (std::int64_t r = 0; r < p; ++r)
          EXPECT_EQ(run.ranks[static_cast<std::size_t>(r)].peak, std::min(m, 2 * (p - r)));
      }
    }
  }
}

TEST(OverlappedAllToAll, InterleavedLeavesNoBubbleBetweenPairs) {
  for (const auto& [schedule, p, v, m] : grid()) {
    if (schedule->name != "interleaved-a2a") continue;
    const auto warm_up = (v - 1) * schedules::interleaved_group(p, m) + 1;
    for (const auto& x : some_passes) {
      const auto b = x.input_gradient + x.weight_gradient;
      const auto run = ideal_run(schedule->table(p, v, m), stage_of(x));
      // The last rank: the interleaved bubble, and its warm-up's forwards and as many backwards
      // alone.
      EXPECT_EQ(run.makespan, (p - 1 + warm_up) * (x.forward + b) + (m * v - warm_up) * x.pair)
          << sizes(schedule->name, p, v, m);
      for (std::int64_t r = 0; r < p; ++r) {
        EXPECT_EQ(run.ranks[static_cast<std::size_t>(r)].peak,
                  std::min(m * v, 2 * (p - r - 1) + warm_up + 1));
      }
    }
  }
}

// Why the warm-up is not that of 1F1B and one forward: written out for two ranks, each would wait
// for the other at every second pair.
TEST(OverlappedAllToAll, NeedsTwiceTheWarmUpOfOneFOneB) {
  const auto short_warm_up = parse_schedule(
      "0F0 0F1 (0F2+0B0) (0F3+0B1) (0F4+0B2) (0F5+0B3) 0B4 0B5\n"
      "1F0 (1F1+1B0) (1F2+1B1) (1F3+1B2) (1F4+1B3) (1F5+1B4) 1B5\n");
  const auto stage = stage_of({2, 2, 2, 5});
  EXPECT_EQ(ideal_run(table_of("1f1b-a2a", 2, 1, 6), stage).makespan, 2 * 6 + 5 * 5);
  // Pairs of the two ranks take turns: 2 forwards, 5 pairs and 4 waits as long, 2 backwards.
  EXPECT_EQ(ideal_run(short_warm_up, stage).makespan, 2 * 6 + 9 * 5);
}

// --- the steady state ----------------------------------------------------------------------------

// A program without what differs when rounds are added: micro-batches count within their direction,
// and what comes after the cut is that many later.
std::vector<Action> counted_from(const ScheduleTable& t, std::size_t rank, std::int64_t earlier) {
  auto program = t.ranks[rank];
  for (auto& a : program) {
    const auto half =
        t.placement == Placement::both_ways && a.stage >= t.pp ? (t.micro_batches + 1) / 2 : 0;
    a.micro_batch -= static_cast<std::uint32_t>(half + earlier);  // wraps before the cut
  }
  return program;
}

// The table of m + round micro-batches is that of m up to a place in its middle, one round more,
// and the rest of that of m with later micro-batches.
TEST(Rounds, OneMoreRoundIsInsertedInTheMiddle) {
  for (const auto* schedule : schedules::all()) {
    int tried = 0;
    for (const std::int64_t p : {1, 2, 3, 4, 8}) {
      for (const std::int64_t v : {1, 2, 3, 5}) {
        for (std::int64_t m = 2 * p; m <= 6 * p; ++m) {
          if (schedule->why_not(p, v, m)) continue;
          const auto round = steady_round(*schedule, p, m);
          if (round == 0) continue;
          ASSERT_EQ(schedule->why_not(p, v, m + round), std::nullopt);
          ASSERT_EQ(steady_round(*schedule, p, m + round), round);
          const auto shorter = schedule->table(p, v, m), longer = schedule->table(p, v, m + round);
          const auto later = schedule->placement == Placement::both_ways ? round / 2 : round;
          ++tried;
          for (std::size_t r = 0; r < shorter.ranks.size(); ++r) {
            const auto head = counted_from(shorter, r, 0),
                       head_of_longer = counted_from(longer, r, 0);
            const auto tail_of_longer = counted_from(longer, r, later);
            std::size_t same = 0, same_end = 0;
            while (same < head.size() && head[same] == head_of_longer[same]) ++same;
            while (same_end < head.size() &&
                   head[head.size() - 1 - same_end] ==
                       tail_of_longer[tail_of_longer.size() - 1 - same_end])
              ++same_end;
            ASSERT_GE(same + same_end, head.size())
                << sizes(schedule->name, p, v, m) << " rank " << r;
          }
        }
      }
    }
    if (schedule->round_micro_batches(4) > 0) {
      EXPECT_GT(tried, 20) << schedule->name;
    }
  }
}

TEST(Rounds, AreOfWholeGroups) {
  const auto round = [](std::string_view name, std::int64_t m) {
    return steady_round(*find_schedule(name), 4, m);
  };
  EXPECT_EQ(round("gpipe", 8), 0);
  EXPECT_EQ(round("1f1b", 9), 1);
  EXPECT_EQ(round("interleaved", 12), 4);
  EXPECT_EQ(round("interleaved", 13), 0);  // other groups than with 17
  EXPECT_EQ(round("dualpipe", 8), 2);
}

}  // namespace
}  // namespace core
