#include "core/plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/schedule_tables.h"

namespace core {
namespace {

using schedule_tables::grid;
using schedule_tables::table_of;

std::string complaint(std::string_view text) {
  try {
    parse_schedule(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

std::string reason(std::string_view text) {
  return why_not_executable(parse_schedule(text)).value_or("runs");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// --- text ----------------------------------------------------------------------------------------

TEST(ScheduleText, ReadsBackWhatItWrites) {
  for (const auto& [schedule, p, v, m] : grid()) {
    const auto table = schedule->table(p, v, m);
    EXPECT_EQ(parse_schedule(to_text(table)), table) << to_text(table);
  }
}

TEST(ScheduleText, HasSplitBackwardsPairsAndPlacements) {
  for (const std::string text : {"0F0 0I0 0W0\n1F0 1I0 1W0\n",
                                 "0F0 0F1 0B0 0B1\n1F0 (1F1+1B0) 1B1\n",
                                 "0F0 (0F1+0I0) 0I1 0W0 0W1\n",
                                 "placement v\n0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0\n",
                                 "placement both_ways\n0F0 3F1 3B1 0B0\n2F1 1F0 1B0 2B1\n"}) {
    EXPECT_EQ(to_text(parse_schedule(text)), text);
    EXPECT_EQ(reason(text), "runs") << text;
  }
  const auto pair = parse_schedule("0F0 (0F1+0B0) 0B1\n").ranks[0];
  EXPECT_EQ(pair[1], (Action{0, Action::Kind::forward, 1, true}));
  EXPECT_EQ(pair[2], (Action{0, Action::Kind::backward, 0, false}));
  EXPECT_EQ(parse_schedule("placement loop\n0F0 0B0\n"), parse_schedule("0F0 0B0\n"));
}

TEST(ScheduleText, MayBeWrittenByHand) {
  EXPECT_EQ(parse_schedule("# two ranks\r\n  0F0\t0B0 \r\n#\n1F0  1B0"),
            parse_schedule("0F0 0B0\n1F0 1B0\n"));
  EXPECT_EQ(parse_schedule("# a V\nplacement v\n0F0 1F0 1B0 0B0\n").placement, Placement::v);
}

TEST(ScheduleText, ComplaintsNameTheLineWhatWasFoundAndWhatWasExpected) {
  for (const std::string_view wrong : {"0X0",
                                       "F0",
                                       "0F",
                                       "0F0F1",
                                       "-1F0",
                                       "0F-1",
                                       "99999F0",
                                       "0F 0",
                                       "(0F0",
                                       "(0F0+)",
                                       "(+0B0)",
                                       "(0F0)",
                                       "(0F0+0B1+0F2)",
                                       "()",
                                       "(",
                                       ")",
                                       "0F0+0B1",
                                       "placement"}) {
    const auto message = complaint("0F0 0B0\n1F0 " + std::string(wrong) + "\n");
    EXPECT_TRUE(has(message, "line 2")) << message;
    EXPECT_TRUE(has(message, "found \"" + std::string(wrong.substr(0, wrong.find(' '))) + "\""))
        << message;
    EXPECT_TRUE(has(message, "expected an action such as 0F0")) << message;
  }
  EXPECT_TRUE(has(complaint("# none\n"), "expected a line of actions for each rank"));
  EXPECT_TRUE(has(complaint(""), "expected a line of actions for each rank"));
  EXPECT_TRUE(has(complaint("0F0 2F0\n1F0\n"), "3 stages on 2 lines"));
  EXPECT_TRUE(has(complaint("placement w\n0F0\n"), "line 1: found placement \"w\", expected loop"));
  EXPECT_TRUE(has(complaint("placement\n0F0\n"), "found 1 words, expected \"placement\" and one"));
  EXPECT_TRUE(has(complaint("placement v\n0F0\n1F0\n"),
                  "2 stages on 2 lines, expected 4: placement v has two stages a rank"));
  EXPECT_TRUE(has(complaint("placement v\nplacement v\n"), "line 2"));
  EXPECT_TRUE(has(complaint("0F0 0B4294967295\n"), "expected at most 100 million cells"));
}

// --- what can run --------------------------------------------------------------------------------

TEST(ScheduleTables, SayWhyTheyCannotRun) {
  EXPECT_EQ(reason("0F0 0B0\n1F0 1B0\n"), "runs");
  EXPECT_EQ(reason("0F0 0B0\n1F0\n"), "1B0 (or 1I0 and 1W0) is missing");
  EXPECT_EQ(reason("0F0 0B0 0F1 0B1\n1F0 1B0\n"), "1F1 is missing");
  EXPECT_EQ(reason("0F0 0I0 0W0\n1F0 1I0\n"), "1W0 is missing");
  EXPECT_EQ(reason("0F0 0B0 0F0\n1F0 1B0\n"), "0F0 stands twice");
  EXPECT_EQ(reason("0F0 0B0 1F0\n1B0\n"), "1F0 stands on rank 0, stage 1 lives on rank 1");
  EXPECT_EQ(reason("0B0 0F0\n1F0 1B0\n"), "0B0 has no 0F0 before it");
  EXPECT_EQ(reason("0F0 0W0 0I0\n"), "0W0 has no 0I0 before it");
  EXPECT_EQ(reason("0I0 0F0 0W0\n"), "0I0 has no 0F0 before it");
  EXPECT_EQ(reason("0F0 0B0 0I0 0W0\n"),
            "0I0 beside 0B0: a backward is either whole (B) or in two parts (I and W)");
  EXPECT_EQ(reason("0F0 0I0 0W0 0B0\n"),
            "0B0 beside 0I0: a backward is either whole (B) or in two parts (I and W)");
  // Rank 0 wants the second micro-batch back before it sends it, rank 1 the first: both wait.
  EXPECT_EQ(reason("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n"),
            "deadlock: rank 0 waits for the inputs of 0B0 for ever");
}

TEST(ScheduleTables, SayWhyPairsCannotRun) {
  EXPECT_EQ(reason("0F0 (0F1+0B0) 0B1\n"), "runs");
  EXPECT_EQ(reason("0F0 (0B0+0F1) 0B1\n"), "runs");
  EXPECT_EQ(reason("(0F0+0F1) 0B0 0B1\n"),
            "(0F0+0F1): expected a pair of one forward and one backward (B or I)");
  EXPECT_EQ(reason("0F0 0I0 (0F1+0W0) 0B1\n"),
            "(0F1+0W0): expected a pair of one forward and one backward (B or I)");
  EXPECT_EQ(reason("(0F0+0B0)\n"),
            "(0F0+0B0): the backward of a micro-batch waits for its forward");
  // The last rank's forward waits for the first rank's, which is paired with what the last sends
  // back after.
  EXPECT_EQ(reason("0F0 (0F1+0B0) 0B1\n1F0 (1F1+1B0) 1B1\n"),
            "deadlock: rank 0 waits for the inputs of (0F1+0B0) for ever");

  auto table = parse_schedule("0F0 0B0\n");
  table.ranks[0][1].with_next = true;
  EXPECT_EQ(why_not_executable(table), "0B0 ends rank 0, expected the second of its pair");
  table = parse_schedule("0F0 (0F1+0B0) 0B1\n");
  table.ranks[0][2].with_next = true;
  EXPECT_EQ(why_not_executable(table), "0B0 is in two pairs, expected pairs of two actions");
}

TEST(ScheduleTables, SayWhatIsWrongWithAPlacement) {
  EXPECT_EQ(reason("placement v\n0F0 1F0 1B0 0B0\n2F0 3F0 3B0 2B0\n"),
            "1F0 stands on rank 0, stage 1 lives on rank 1");
  // With two micro-batches, the first goes through stages 0 and 1, the second through 2 and 3.
  EXPECT_EQ(reason("placement both_ways\n0F0 3F0 3B0 0B0\n1F0 2F1 2B1 1B0\n"),
            "3F0: micro-batch 0 goes through stages 0 to 1");
  auto table = table_of("zb-v", 2, 2, 4);
  table.vpp = 3;
  EXPECT_EQ(why_not_executable(table), "placement v has two stages a rank, not vpp=3");
}

TEST(ScheduleTables, RefuseCellsOutsideTheirSizes) {
  auto table = table_of("1f1b", 2, 1, 2);
  table.micro_batches = 1;
  EXPECT_TRUE(
      has(why_not_executable(table).value_or("runs"), "outside 2 stages and 1 micro-batches"));
  table = table_of("1f1b", 2, 1, 2);
  table.ranks.pop_back();
  EXPECT_EQ(why_not_executable(table), "1 lines, pp=2 ranks");
  table.pp = 0;
  EXPECT_TRUE(has(why_not_executable(table).value_or("runs"), "expected 1 or more of each"));
}

// A slow reference. A program is a chain of units, an action or a pair; a table runs when the graph
// of "before in the program" and "input of" has no cycle.
using Unit = std::vector<Action>;
std::vector<Unit> units_of(const std::vector<Action>& program) {
  std::vector<Unit> units;
  for (std::size_t i = 0; i < program.size(); ++i) {
    units.push_back({program[i]});
    if (program[i].with_next) units.back().push_back(program[++i]);
  }
  return units;
}

bool is_acyclic(const ScheduleTable& t) {
  // The unit of each cell: F, then what sends the gradient back (B or I), then W.
  const auto cell = [&](std::int64_t s, int kind, std::int64_t m) {
    return static_cast<std::size_t>((kind * t.stages() + s) * t.micro_batches + m);
  };
  const auto kind_of = [](const Action& a) {
    return a.kind == Action::Kind::forward ? 0 : a.kind == Action::Kind::weight_gradient ? 2 : 1;
  };
  std::vector<std::size_t> unit(static_cast<std::size_t>(3 * t.stages() * t.micro_batches));
  std::vector<std::vector<std::size_t>> after(1);  // unit 0: cells that are nowhere
  for (const auto& program : t.ranks) {
    bool first = true;
    for (const auto& u : units_of(program)) {
      for (const auto& a : u) unit[cell(a.stage, kind_of(a), a.micro_batch)] = after.size();
      if (!first) after.back().push_back(after.size());
      after.emplace_back();
      first = false;
    }
  }
  const auto edge = [&](std::size_t from, std::size_t to) {
    if (unit[from] != 0 && unit[to] != 0) after[unit[from]].push_back(unit[to]);
  };
  for (std::int64_t m = 0; m < t.micro_batches; ++m) {
    for (std::int64_t s = 0; s < t.stages(); ++s) {
      if (!t.visits(s, m)) continue;
      edge(cell(s, 0, m), t.is_last(s) ? cell(s, 1, m) : cell(s + 1, 0, m));
      if (!t.is_first(s)) edge(cell(s, 1, m), cell(s - 1, 1, m));
      edge(cell(s, 0, m), cell(s, 1, m));
      edge(cell(s, 1, m), cell(s, 2, m));
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
  const std::vector<ScheduleTable> tables{table_of("1f1b", 3, 1, 2),
                                          table_of("interleaved", 2, 2, 2),
                                          table_of("zb-h1", 3, 1, 3),
                                          table_of("zb-v", 2, 2, 3),
                                          table_of("dualpipe", 2, 1, 4),
                                          table_of("dualpipev", 1, 2, 2),
                                          table_of("1f1b-a2a", 2, 1, 5)};
  for (std::size_t kind = 0; kind < tables.size(); ++kind) {
    int run = 0, stuck = 0;
    for (int i = 0; i < 1000; ++i) {
      auto table = tables[kind];
      for (auto& rank : table.ranks) {
        auto units = units_of(rank);
        // Neighbours only, so that about as many run as not.
        for (auto swaps = rng() % 3; swaps > 0; --swaps) {
          const auto at = rng() % (units.size() - 1);
          std::swap(units[at], units[at + 1]);
        }
        rank.clear();
        for (const auto& u : units) rank.insert(rank.end(), u.begin(), u.end());
      }
      const bool runs = !why_not_executable(table).has_value();
      ASSERT_EQ(runs, is_acyclic(table)) << to_text(table);
      ++(runs ? run : stuck);
    }
    EXPECT_GT(run, 50) << kind;
    EXPECT_GT(stuck, 50) << kind;
  }
}

// --- in flight -----------------------------------------------------------------------------------

// A whole backward ends it; of a split one, W does.
// Runs of whole backwards of one stage after another on a rank, whatever stands between them.
TEST(Runs, EndWhereARanksNextBackwardIsOfAnotherStage) {
  const auto table = parse_schedule("0F0 0F1 1F0 1B0 1F1 1B1 0F2 0B0 0F3 0B1 1F2 1B2 1F3 1B3 0B2 0B3");
  EXPECT_EQ(ends_of_runs(table), (std::vector<bool>{false, true, false, true, false, true, false, true}));
  const auto plain = find_schedule("1f1b")->table(4, 1, 8);
  const auto ends = ends_of_runs(plain);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(ends[stage * 8 + i], i == 7);
  }
}

TEST(InFlight, LastsUntilTheWeightGradient) {
  const auto most = [](std::string_view text) { return most_in_flight(parse_schedule(text)); };
  EXPECT_EQ(most("0F0 0B0 0F1 0B1\n"), std::vector<std::int64_t>{1});
  EXPECT_EQ(most("0F0 0I0 0F1 0I1 0W0 0W1\n"), std::vector<std::int64_t>{2});
  EXPECT_EQ(most("0F0 0I0 0W0 0F1 0I1 0W1\n"), std::vector<std::int64_t>{1});
  EXPECT_EQ(most("0F0 (0F1+0B0) 0B1\n"), std::vector<std::int64_t>{2});
  EXPECT_EQ(most("placement v\n0F0 0F1 1F0 1B0 1F1 1B1 0B0 0B1\n"),
            (std::vector<std::int64_t>{2, 1}));
}

// --- where stages are ----------------------------------------------------------------------------

TEST(Placement, PutsStagesOnRanks) {
  ScheduleTable t{4, 2, 4, {}};
  const auto ranks = [&] {
    std::vector<std::int64_t> out;
    for (std::int64_t s = 0; s < t.stages(); ++s) out.push_back(t.rank_of(s));
    return out;
  };
  using Ranks = std::vector<std::int64_t>;
  EXPECT_EQ(ranks(), (Ranks{0, 1, 2, 3, 0, 1, 2, 3}));
  t.placement = Placement::v;
  EXPECT_EQ(ranks(), (Ranks{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(t.model_stage(6), 6);
  t.placement = Placement::both_ways;
  EXPECT_EQ(ranks(), (Ranks{0, 1, 2, 3, 3, 2, 1, 0}));
  EXPECT_EQ(t.model_stage(6), 2);
  for (std::int64_t s = 0; s < 8; ++s) {
    EXPECT_EQ(t.is_first(s), s == 0 || s == 4);
    EXPECT_EQ(t.is_last(s), s == 3 || s == 7);
    for (std::int64_t m = 0; m < 4; ++m) EXPECT_EQ(t.visits(s, m), (s < 4) == (m < 2));
  }
}

// A rank of DualPipe has two stages of the model, and each is there twice: parameters 2 x
// (DeepSeek-V3, arXiv 2412.19437, table 2). A V has each stage once.
TEST(Placement, BothWaysDoublesParameters) {
  const std::int64_t p = 6;
  std::vector<int> both(static_cast<std::size_t>(p)), v(static_cast<std::size_t>(2 * p));
  for (std::int64_t r = 0; r < p; ++r) {
    const auto of_both = model_stages_of_rank(Placement::both_ways, p, p, r);
    const auto of_v = model_stages_of_rank(Placement::v, p, 2 * p, r);
    EXPECT_EQ(of_both.size(), 2U);
    EXPECT_EQ(of_v.size(), 2U);
    for (const auto s : of_both) ++both[static_cast<std::size_t>(s)];
    for (const auto s : of_v) ++v[static_cast<std::size_t>(s)];
  }
  EXPECT_EQ(both, std::vector<int>(static_cast<std::size_t>(p), 2));
  EXPECT_EQ(v, std::vector<int>(static_cast<std::size_t>(2 * p), 1));
}

}  // namespace
}  // namespace core
