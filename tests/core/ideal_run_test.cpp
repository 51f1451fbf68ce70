#include "core/plan/ideal_run.h"

#include <gtest/gtest.h>

#include <vector>

namespace core {
namespace {

using Times = std::vector<std::int64_t>;

// One micro-batch through two stages and back: 3 + 2 + 1 + 5.
TEST(IdealRun, FollowsAMicroBatchThroughStagesOfDifferentTimes) {
  const auto table = parse_schedule("0F0 0B0\n1F0 1B0\n");
  const std::vector<IdealStage> stages{{.forward = 3, .backward = 5},
                                       {.forward = 2, .backward = 1}};
  const auto run = ideal_run(table, stages);
  EXPECT_EQ(run.makespan, 11);
  EXPECT_EQ(run.ranks[0].ends, (Times{3, 11}));
  EXPECT_EQ(run.ranks[1].ends, (Times{5, 6}));
  EXPECT_EQ(run.bubble(0), 11 - 8);
  EXPECT_EQ(run.bubble(1), 11 - 3);
  EXPECT_EQ(run.ranks[1].start, 3);
  EXPECT_EQ(run.ranks[0].bubble_of_its_own(), 3);
  EXPECT_EQ(run.ranks[1].bubble_of_its_own(), 0);
}

// I sends the gradient back, so that the stage before need not wait for W: 3 forwards of 2, then
// I of the last stage, I of the first; W of 7 of the last ends at 2 + 2 + 1 + 7.
TEST(IdealRun, DoesNotLetTheStageBeforeWaitForWeightGradients) {
  const IdealStage stage{.forward = 2, .input_gradient = 1, .weight_gradient = 7};
  const auto run = ideal_run(parse_schedule("0F0 0I0 0W0\n1F0 1I0 1W0\n"), stage);
  EXPECT_EQ(run.ranks[0].ends, (Times{2, 6, 13}));
  EXPECT_EQ(run.ranks[1].ends, (Times{4, 5, 12}));
}

TEST(IdealRun, PairsTakeTheLongerOrAGivenTime) {
  const auto table = parse_schedule("0F0 (0F1+0B0) 0B1\n");
  IdealStage stage{.forward = 2, .backward = 4};
  EXPECT_EQ(ideal_run(table, stage).makespan, 2 + 4 + 4);
  stage.with_backward = 5;
  EXPECT_EQ(ideal_run(table, stage).makespan, 2 + 5 + 4);
  EXPECT_EQ(ideal_run(table, stage).ranks[0].busy, 11);
  EXPECT_EQ(ideal_run(table, stage).ranks[0].ends, (Times{2, 7, 7, 11}));
  const auto split = parse_schedule("0F0 (0F1+0I0) 0I1 0W0 0W1\n");
  EXPECT_EQ(ideal_run(split, IdealStage{.forward = 2, .input_gradient = 3}).makespan,
            2 + 3 + 3 + 1 + 1);
  EXPECT_EQ(ideal_run(split, IdealStage{.with_input_gradient = 9}).makespan, 1 + 9 + 1 + 1 + 1);
}

// A forward holds 5; B frees them, I frees 3, W the rest. What runs in a pair is held together.
TEST(IdealRun, CountsActivationsOverTheProgram) {
  const IdealStage stage{.activation = 5, .kept_for_weight = 2};
  const auto held = [&](std::string_view text) {
    return ideal_run(parse_schedule(text), stage).ranks[0].memory;
  };
  EXPECT_EQ(held("0F0 0B0 0F1 0B1\n"), (Times{5, 5, 5, 5}));
  EXPECT_EQ(held("0F0 0I0 0F1 0I1 0W0 0W1\n"), (Times{5, 5, 7, 7, 4, 2}));
  EXPECT_EQ(held("0F0 (0F1+0B0) 0B1\n"), (Times{5, 10, 10, 5}));
  EXPECT_EQ(ideal_run(parse_schedule("0F0 0I0 0F1 0I1 0W0 0W1\n"), stage).ranks[0].peak, 7);
}

}  // namespace
}  // namespace core
