#include "core/graph/step_graph.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/graph/lower.h"
#include "core/timeline.h"
#include "tests/core/plans.h"

namespace core {
namespace {

// --- graphs --------------------------------------------------------------------------------------

TEST(StepGraphText, ReadsBackTheGraphsOfAllPlansGrainsAndFolds) {
  int graphs = 0;
  for (const std::string name : {"tiny-gpt", "tiny-llama"}) {
    const auto model = load_model(name);
    for (const auto& plan : plans::grid(model, 4, 64)) {
      const auto work = plans::step(model, plan, 64);
      for (const auto grain : {Grain::cell, Grain::mixed, Grain::op}) {
        for (const auto fold : {Fold::yes, Fold::no}) {
          const auto graph = lower(work, plans::table(plan), grain, fold);
          const auto text = to_text(graph);
          ASSERT_EQ(parse_step_graph(text), graph) << to_text(plan) << ' ' << name_of(grain);
          ++graphs;
        }
      }
    }
  }
  EXPECT_GT(graphs, 500);
}

// All that a line can hold, by hand.
constexpr std::string_view by_hand =
    "rank 4 1 2 3 4 5 6 7 8 9\n"
    "rank 4 0 0 0 0 0 0 0 0 0\n"
    "group dp 0 2 4\n"
    "spec attention core fp16 backward flash1 0 64 128 16 8 4 32 1024.5 2e+20 -1\n"
    "spec all_reduce - bf16 forward flash2 1 0 0 0 1 0 0 0 4 0 beside=copy_engine\n"
    "spec cell forward fp8 forward unfused 1 0 0 0 1 0 0 0 0 -1\n"
    "spec host host tf32 forward flash3 1 3 0 0 1 0 0 0 0 -1\n"
    "chain 0 0r 1o 1ro 3\n"
    "op 2 3 1 recompute 7 12 1 0:compute\n"
    "op 1 0 0 gradient_reduce 0 0 0 0:data 1:data after 0\n"
    "op 1 1 0 send_backward 0 0 0 1:send_backward after 0 1\n"
    "tensor 0 2 1 logits 77\n";

TEST(StepGraphText, WritesWhatItReads) { EXPECT_EQ(to_text(parse_step_graph(by_hand)), by_hand); }

TEST(StepGraphText, KeepsExpertsInsideAGraphApart) {
  const std::string text =
      "spec gemm experts_up bf16 forward flash2 1 128 256 512 8 0 0 268435456 0 -1 grouped captured\n"
      "spec gemm experts_up bf16 forward flash2 1 128 256 512 8 0 0 268435456 0 -1 grouped\n";
  const auto graph = parse_step_graph(text);
  EXPECT_EQ(to_text(graph), text);
  EXPECT_TRUE(graph.specs[0].captured);
  EXPECT_FALSE(graph.specs[1].captured);
}

TEST(StepGraphText, MeansWhatItSays) {
  const auto g = parse_step_graph(by_hand);
  EXPECT_EQ(g.ranks, 2);
  EXPECT_EQ(g.multiplicity, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(g.resident[0], (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(g.groups[0], (CommGroup{"dp", 0, 2, 4}));
  EXPECT_EQ(g.specs[0].beside, Mover::none);
  EXPECT_EQ(g.specs[1].beside, Mover::copy_engine);
  EXPECT_EQ(g.specs[0].kind, OpKind::attention);
  EXPECT_FALSE(g.specs[0].causal);
  EXPECT_EQ(g.specs[0].flops.value, 1024.5);
  EXPECT_EQ(g.specs[1].name, "");
  EXPECT_EQ(g.chains[0],
            (std::vector<ChainOp>{{0, false, false},
                                  {0, true, false},
                                  {1, false, true},
                                  {1, true, true},
                                  {3, false, false}}));
  EXPECT_EQ(g.key[0], (OpKey{3, 1, Phase::recompute, 7, 12}));
  EXPECT_EQ(g.recompute, (std::vector<std::uint8_t>{1, 0, 0}));
  EXPECT_EQ(g.queues,
            (std::vector<std::uint32_t>{0, 2, streams_per_rank + 2, streams_per_rank + 4}));
  EXPECT_EQ(g.dependencies, (std::vector<OpId>{0, 0, 1}));
  EXPECT_EQ(g.tensors[0], (TensorLife{0, 2, 1, MemoryTerm::logits, 77}));
  EXPECT_EQ(g.rank_of(2), 1);
  EXPECT_EQ(g.stream_of(2), Stream::send_backward);
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

std::string complaint(const std::string& text) {
  try {
    parse_step_graph(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

// Each mistake with the number of its line and what stands there.
TEST(StepGraphText, ComplaintsNameTheLineAndWhatWasFound) {
  struct Mistake {
    std::string_view right, wrong, line, found;
  };
  const std::vector<Mistake> mistakes = {
      {"group dp", "grup dp", "line 3", "grup"},
      {"rank 4 1 2", "rank 4 x 2", "line 1", "x"},
      {"7 8 9\n", "7 8\n", "line 1", "end of line"},
      {"7 8 9\n", "7 8 9 10\n", "line 1", "10"},
      {"0 2 4\n", "0 2\n", "line 3", "end of line"},
      {"0 2 4\n", "0 2 4 5\n", "line 3", "5"},
      {"attention core", "atention core", "line 4", "atention"},
      {"fp16", "fp12", "line 4", "fp12"},
      {"backward flash1", "upward flash1", "line 4", "upward"},
      {"flash1 0 64", "flash9 0 64", "line 4", "flash9"},
      {"flash1 0 64", "flash1 2 64", "line 4", "2"},
      {"2e+20 -1", "2e+20", "line 4", "end of line"},
      {"2e+20 -1", "2e+20 -2", "line 4", "-2"},
      {"2e+20 -1", "2e+20 -1 0", "line 4", "0"},
      {"0 0 0 4 0 beside", "0 0 0 4 1 beside", "line 5", "group 1"},
      {"beside=copy_engine", "beside=pigeons", "line 5", "beside=pigeons"},
      {"unfused 1 0 0", "unfused 1 9 0", "line 6", "chain 9"},
      {"flash3 1 3 0 0", "flash3 1 3 -1 0", "line 7", "chain -1"},
      {"chain 0 0r", "chain 0 2r", "line 8", "2r"},
      {"chain 0 0r", "chain 0 4", "line 8", "4"},
      {"chain 0 0r", "chain r", "line 8", ""},
      {"op 2 3", "op 4 3", "line 9", "4"},
      {"recompute 7 12 1", "recompte 7 12 1", "line 9", "recompte"},
      {"recompute 7 12 1", "recompute 7 12 2", "line 9", "2"},
      {"1 0:compute", "1", "line 9", "end of line"},
      {"1 0:compute", "1 0-compute", "line 9", "0-compute"},
      {"1 0:compute", "1 2:compute", "line 9", "2:compute"},
      {"1 0:compute", "1 0:compte", "line 9", "compte"},
      {"0:data 1:data", "0:data 0:data", "line 10", "0:data"},
      {"1:data after 0", "1:data after 1", "line 10", "1"},
      {"1:data after 0", "1:data after -1", "line 10", "-1"},
      {"logits 77", "logit 77", "line 12", "logit"},
      {"logits 77", "logits -1", "line 12", "outside the graph"},
      {"logits 77", "logits 77 1", "line 12", "1"},
      {"tensor 0 2 1", "tensor 0 3 1", "line 12", "outside the graph"},
      {"tensor 0 2 1", "tensor 2 1 1", "line 12", "outside the graph"},
      {"tensor 0 2 1", "tensor 0 2 2", "line 12", "outside the graph"},
  };
  for (const auto& m : mistakes) {
    const auto message = complaint(replaced(std::string(by_hand), m.right, m.wrong));
    EXPECT_NE(message.find(std::string(m.line) + ":"), std::string::npos)
        << m.wrong << ": " << message;
    EXPECT_NE(message.find("found"), std::string::npos) << m.wrong << ": " << message;
    EXPECT_NE(message.find(m.found), std::string::npos) << m.wrong << ": " << message;
    EXPECT_NE(message.find("expected"), std::string::npos) << m.wrong << ": " << message;
  }
}

// --- timelines -----------------------------------------------------------------------------------

TEST(TimelineText, ReadsBack) {
  Timeline t;
  t.start = {0, 5, 9'000'000'000'000'000};
  t.end = {5, 5, 9'000'000'000'000'001};
  t.makespan = 9'000'000'000'000'001;
  EXPECT_EQ(to_text(t), "0 0 5\n1 5 5\n2 9000000000000000 9000000000000001\n");
  EXPECT_EQ(parse_timeline(to_text(t)), t);
  EXPECT_EQ(parse_timeline(""), Timeline{});
}

TEST(TimelineText, ComplaintsNameTheLine) {
  for (const std::string wrong : {"1 5", "2 5 6", "1 6 5", "1 -5 6", "1 5 6 7", "1 5 x"}) {
    try {
      parse_timeline("0 0 5\n" + wrong + "\n");
      ADD_FAILURE() << wrong;
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("line 2"), std::string::npos) << message;
      EXPECT_NE(message.find('"' + wrong + '"'), std::string::npos) << message;
    }
  }
}

// --- memory over time ----------------------------------------------------------------------------

// Resident 3; 10 from the first operation's start to the second's end; 4 during the second. At an
// instant deaths come before births: 100 is born when 10 and 4 die.
TEST(MemoryOverTime, SumsTheTensorsThatAreAlive) {
  const auto g = parse_step_graph(
      "rank 1 1 2 0 0 0 0 0 0 0\n"
      "spec memory_bound a bf16 forward flash2 1 0 0 0 1 0 0 0 0 -1\n"
      "op 0 0 0 forward 0 0 0 0:compute\n"
      "op 0 0 0 forward 1 0 0 0:compute\n"
      "op 0 0 0 forward 2 0 0 0:compute\n"
      "tensor 0 1 0 activations 10\n"
      "tensor 1 1 0 activations 4\n"
      "tensor 2 2 0 logits 100\n");
  const auto points = memory_over_time(g, parse_timeline("0 1 5\n1 5 8\n2 8 9\n"), 0);
  std::vector<std::pair<SimTime, std::int64_t>> got;
  for (const auto& p : points) got.emplace_back(p.time, p.bytes);
  const std::vector<std::pair<SimTime, std::int64_t>> expected = {
      {0, 3}, {1, 13}, {5, 17}, {8, 3}, {8, 103}, {9, 3}};
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace core
