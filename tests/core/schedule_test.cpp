#include "core/plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"

namespace core {
namespace {

ScheduleTable table_of(std::string_view schedule, std::int64_t p, std::int64_t v, std::int64_t m) {
  return find_schedule(schedule)->table(p, v, m);
}

std::string complaint(std::string_view text) {
  try {
    parse_schedule(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Every legal (schedule, p, v, m) of a grid.
struct Size {
  const Schedule* schedule;
  std::int64_t p, v, m;
};
std::vector<Size> grid() {
  std::vector<Size> sizes;
  for (const auto* schedule : schedules::all()) {
    for (const std::int64_t p : {1, 2, 3, 4, 8}) {
      for (const std::int64_t v : {1, 2, 3, 5}) {
        for (const std::int64_t m : {1, 2, 3, 4, 6, 8, 9, 16, 24}) {
          if (!schedule->why_not(p, v, m)) sizes.push_back({schedule, p, v, m});
        }
      }
    }
  }
  return sizes;
}

// --- text ----------------------------------------------------------------------------------------

TEST(ScheduleText, OneFOneBOnTwoRanksReadsAsInThePapers) {
  EXPECT_EQ(to_text(table_of("1f1b", 2, 1, 3)),
            "0F0 0F1 0B0 0F2 0B1 0B2\n"
            "1F0 1B0 1F1 1B1 1F2 1B2\n");
  EXPECT_EQ(to_text(table_of("gpipe", 2, 1, 2)),
            "0F0 0F1 0B0 0B1\n"
            "1F0 1F1 1B0 1B1\n");
}

// Narayanan et al. 2021 (arXiv 2104.04473), figure 4: two chunks a rank, groups of p micro-batches.
// Rank r warms up with 2 (p - r - 1) + (v - 1) p forwards: 4 and 2.
TEST(ScheduleText, InterleavedOnTwoRanksIsMegatrons) {
  EXPECT_EQ(to_text(table_of("interleaved", 2, 2, 2)),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1\n");
}

TEST(ScheduleText, ReadsBackWhatItWrites) {
  for (const auto& [schedule, p, v, m] : grid()) {
    const auto table = schedule->table(p, v, m);
    EXPECT_EQ(parse_schedule(to_text(table)), table) << to_text(table);
  }
  const std::string split = "0F0 0I0 0W0\n1F0 1I0 1W0\n";
  EXPECT_EQ(to_text(parse_schedule(split)), split);
}

TEST(ScheduleText, ComplaintsNameTheLineWhatWasFoundAndWhatWasExpected) {
  for (const std::string_view wrong :
       {"0X0", "F0", "0F", "0F0F1", "-1F0", "0F-1", "99999F0", "0F 0"}) {
    const auto message = complaint("0F0 0B0\n1F0 " + std::string(wrong) + "\n");
    EXPECT_TRUE(has(message, "line 2")) << message;
    EXPECT_TRUE(has(message, "found \"" + std::string(wrong.substr(0, wrong.find(' '))) + "\""))
        << message;
    EXPECT_TRUE(has(message, "expected an action such as 0F0")) << message;
  }
  EXPECT_TRUE(has(complaint(""), "expected a line of actions for each rank"));
  EXPECT_TRUE(has(complaint("0F0 2F0\n1F0\n"), "3 stages on 2 lines"));
}

// --- what can run --------------------------------------------------------------------------------

TEST(ScheduleTables, AllRunOverAGridOfSizes) {
  // One stage a rank: each p and m. Interleaved: p of 2, 3, 4, 8 and the m that they divide.
  EXPECT_EQ(grid().size(), 2U * 5 * 9 + 3U * (6 + 4 + 4 + 3));
  for (const auto& [schedule, p, v, m] : grid()) {
    EXPECT_EQ(why_not_executable(schedule->table(p, v, m)), std::nullopt)
        << schedule->name << " p=" << p << " v=" << v << " m=" << m;
  }
}

TEST(ScheduleTables, SayWhyTheyCannotRun) {
  const auto reason = [](std::string_view text) {
    return why_not_executable(parse_schedule(text)).value_or("runs");
  };
  EXPECT_EQ(reason("0F0 0B0\n1F0 1B0\n"), "runs");
  EXPECT_EQ(reason("0F0 0B0\n1F0\n"), "3 cells, expected 4");
  EXPECT_EQ(reason("0F0 0B0 0F0\n1F0 1B0\n"), "0F0 stands twice");
  EXPECT_EQ(reason("0F0 0B0 1F0\n1B0\n"), "1F0 stands on rank 0, stage 1 lives on rank 1");
  EXPECT_TRUE(has(reason("0B0 0F0\n1F0 1B0\n"), "deadlock: rank 0 waits for the inputs of 0B0"));
  // Rank 0 wants the second micro-batch back before it sends it, rank 1 the first: both wait.
  EXPECT_TRUE(has(reason("0F0 0B1 0F1 0B0\n1F0 1B0 1F1 1B1\n"), "deadlock"));
  EXPECT_TRUE(has(reason("0F0 0I0 0W0\n1F0 1I0 1W0\n"), "split backward"));
}

TEST(ScheduleTables, RefuseCellsOutsideTheirSizes) {
  auto table = table_of("1f1b", 2, 1, 2);
  table.micro_batches = 1;
  EXPECT_TRUE(
      has(why_not_executable(table).value_or("runs"), "outside 2 stages and 1 micro-batches"));
  table = table_of("1f1b", 2, 1, 2);
  table.ranks.pop_back();
  EXPECT_EQ(why_not_executable(table), "1 lines, pp=2 ranks");
}

// A slow reference: the table runs when the graph of "before in the program" and "input of" has no
// cycle.
bool is_acyclic(const ScheduleTable& t) {
  const auto forward = Action::Kind::forward;
  const auto index = [&](std::int64_t stage, bool backward, std::int64_t m) {
    return static_cast<std::size_t>(((backward ? t.stages() : 0) + stage) * t.micro_batches + m);
  };
  std::vector<std::vector<std::size_t>> after(
      static_cast<std::size_t>(2 * t.stages() * t.micro_batches));
  for (const auto& rank : t.ranks) {
    for (std::size_t i = 0; i + 1 < rank.size(); ++i) {
      after[index(rank[i].stage, rank[i].kind != forward, rank[i].micro_batch)].push_back(
          index(rank[i + 1].stage, rank[i + 1].kind != forward, rank[i + 1].micro_batch));
    }
  }
  for (std::int64_t m = 0; m < t.micro_batches; ++m) {
    for (std::int64_t s = 0; s < t.stages(); ++s) {
      const bool last = s + 1 == t.stages();
      after[index(s, false, m)].push_back(last ? index(s, true, m) : index(s + 1, false, m));
      if (s > 0) after[index(s, true, m)].push_back(index(s - 1, true, m));
    }
  }
  std::vector<int> state(after.size(), 0);  // 1 = on the path, 2 = done
  const std::function<bool(std::size_t)> visit = [&](std::size_t at) {
    if (state[at] != 0) return state[at] == 2;
    state[at] = 1;
    for (const auto next : after[at]) {
      if (!visit(next)) return false;
    }
    state[at] = 2;
    return true;
  };
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (!visit(i)) return false;
  }
  return true;
}

TEST(ScheduleTables, ShuffledProgramsRunJustWhenTheirGraphHasNoCycle) {
  std::mt19937_64 rng(1);
  int run = 0, stuck = 0;
  for (int i = 0; i < 3000; ++i) {
    auto table = i % 2 == 0 ? table_of("1f1b", 3, 1, 2) : table_of("interleaved", 2, 2, 2);
    for (auto& rank : table.ranks) {
      for (auto swaps = rng() % 4; swaps > 0; --swaps)
        std::swap(rank[rng() % rank.size()], rank[rng() % rank.size()]);
    }
    const bool runs = !why_not_executable(table).has_value();
    ASSERT_EQ(runs, is_acyclic(table)) << to_text(table);
    ++(runs ? run : stuck);
  }
  EXPECT_GT(run, 300);
  EXPECT_GT(stuck, 300);
}

// --- legality ------------------------------------------------------------------------------------

TEST(Schedules, AreFoundByNameAndRefuseSizesTheyAreNotMadeFor) {
  EXPECT_EQ(find_schedule("zigzag"), nullptr);
  EXPECT_EQ(find_schedule("1f1b")->why_not(4, 2, 8),
            "schedule 1f1b has one stage a rank, not vpp=2");
  EXPECT_EQ(find_schedule("gpipe")->why_not(4, 2, 8),
            "schedule gpipe has one stage a rank, not vpp=2");
  EXPECT_EQ(find_schedule("interleaved")->why_not(4, 2, 10),
            "10 micro-batches do not divide by pp=4 (schedule interleaved)");
  EXPECT_NE(find_schedule("interleaved")->why_not(4, 1, 8), std::nullopt);
  EXPECT_NE(find_schedule("interleaved")->why_not(1, 2, 8), std::nullopt);
}

// --- activations in flight -----------------------------------------------------------------------

// Stage s of 1F1B holds min(m, p - s) micro-batches (Megatron-LM, arXiv 2104.04473, section 2.2.1).
TEST(InFlight, OneFOneBHoldsAsManyMicroBatchesAsStagesAreLeft) {
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

TEST(InFlight, GpipeHoldsAllMicroBatches) {
  for (const std::int64_t m : {1, 3, 20}) {
    EXPECT_EQ(most_in_flight(table_of("gpipe", 4, 1, m)), std::vector<std::int64_t>(4, m));
  }
}

// Most cells of all a rank's chunks that are forward and not yet backward.
std::int64_t chunks_in_flight(const std::vector<Action>& program) {
  std::int64_t now = 0, most = 0;
  for (const auto& a : program)
    most = std::max(most, now += a.kind == Action::Kind::forward ? 1 : -1);
  return most;
}

// Rank r warms up with 2 (p - r - 1) + (v - 1) p forwards, and one more follows before the first
// backward; a rank has m v cells at most. On the first rank that is 2 (p - 1) + (v - 1) p + 1, or
// p v (1 + (p - 1) / (p v)) of its layers' share (arXiv 2205.05198, section 4.2.3).
TEST(InFlight, InterleavedHoldsItsWarmUpAndOneMore) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t v : {2, 3, 5}) {
      for (const std::int64_t rounds : {1, 2, 4}) {
        const auto m = rounds * p;
        const auto table = table_of("interleaved", p, v, m);
        for (std::int64_t r = 0; r < p; ++r) {
          EXPECT_EQ(chunks_in_flight(table.ranks[static_cast<std::size_t>(r)]),
                    std::min(m * v, 2 * (p - r - 1) + (v - 1) * p + 1));
        }
        if (rounds > 1) {
          EXPECT_EQ(chunks_in_flight(table.ranks[0]), p * v + p - 1);
        }
      }
    }
  }
}

// By chunk: a chunk's micro-batches go in by groups of p, so that none has more in flight than the
// rank; together the most of each are no less than the rank's most.
TEST(InFlight, InterleavedChunksAddUpToTheirRank) {
  const std::int64_t p = 4, v = 3;
  const auto table = table_of("interleaved", p, v, 16);
  const auto most = most_in_flight(table);
  for (std::int64_t r = 0; r < p; ++r) {
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < v; ++c) sum += most[static_cast<std::size_t>(c * p + r)];
    EXPECT_GE(sum, chunks_in_flight(table.ranks[static_cast<std::size_t>(r)]));
  }
  EXPECT_EQ(most.back(), 1);  // the last stage goes backward at once
}

// --- the steady state ----------------------------------------------------------------------------

Action later(Action a, std::int64_t micro_batches) {
  a.micro_batch += static_cast<std::uint32_t>(micro_batches);
  return a;
}

// The table of m + round micro-batches is that of m up to the end of its warm-up, one round more,
// and the rest of that of m with later micro-batches.
TEST(Rounds, OneMoreRoundIsInsertedInTheMiddle) {
  int tried = 0;
  for (const auto& [schedule, p, v, m] : grid()) {
    const auto round = schedule->round_micro_batches(p);
    // The warm-up is whole: p - 1 of m, or two groups of p.
    if (round == 0 || m < (round == 1 ? p : 2 * p) || schedule->why_not(p, v, m + round)) continue;
    const auto shorter = schedule->table(p, v, m), longer = schedule->table(p, v, m + round);
    ++tried;
    for (std::size_t r = 0; r < shorter.ranks.size(); ++r) {
      const auto &a = shorter.ranks[r], &b = longer.ranks[r];
      const auto added = static_cast<std::size_t>(2 * round * v);
      ASSERT_EQ(b.size(), a.size() + added);
      const auto cut = static_cast<std::size_t>(
          std::find_if(
              a.begin(), a.end(), [](const Action& x) { return x.kind != Action::Kind::forward; }) -
          a.begin());
      for (std::size_t i = 0; i < cut; ++i) ASSERT_EQ(b[i], a[i]) << schedule->name;
      for (std::size_t i = cut; i < a.size(); ++i)
        ASSERT_EQ(b[i + added], later(a[i], round)) << schedule->name;
      // The round itself has each of the rank's stages forward and backward once a micro-batch.
      std::int64_t forwards = 0;
      for (std::size_t i = cut; i < cut + added; ++i)
        forwards += b[i].kind == Action::Kind::forward ? 1 : 0;
      EXPECT_EQ(forwards, round * v);
    }
  }
  EXPECT_GT(tried, 50);
  EXPECT_EQ(find_schedule("gpipe")->round_micro_batches(4), 0);
}

}  // namespace
}  // namespace core
