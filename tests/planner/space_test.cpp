// Settings that a question holds, as each unit of the space has them.
#include "planner/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "core/model/model.h"

namespace planner {
namespace {

// 16 GPUs in nodes of 4: a group "node" has the replicas that share a node, 4 / tp of them, and all where all do.
TEST(Space, GroupsOfANodeHaveTheRanksOfTheMachinesNode) {
  const auto model = core::load_model("tiny-llama");
  for (const std::int64_t node : {2, 4, 8}) {
    Question question;
    question.model = &model, question.gpus = 16, question.global_batch = 16, question.seq = 64, question.recipe = "bf16";
    question.fixed = core::parse_plan("shard=p:node,g:node,o:all mb=1 cp=1", "--fix");
    question.gpus_per_node = node;
    std::set<std::int64_t> tp;
    const Space space(question, axes_of(question));
    for (const auto& unit : space.units()) {
      const auto& plan = unit.plan;
      if (plan.zero == 0 || plan.replicas() == 1) continue;
      const auto ranks = std::min(plan.replicas(), std::max<std::int64_t>(1, node / plan.tp));
      const auto expected = ranks == plan.replicas() ? std::nullopt : std::optional(ranks);
      EXPECT_EQ(plan.shard.parameters, expected) << core::to_text(plan);
      EXPECT_EQ(plan.shard.gradients, expected) << core::to_text(plan);
      EXPECT_EQ(plan.shard.optimizer, std::nullopt) << core::to_text(plan);
      tp.insert(plan.tp);
    }
    EXPECT_GE(tp.size(), 2U);
  }
}

// Experts' replicas are ep x etp apart: of a node of 8, ep = 2 leaves groups of 4.
TEST(Space, GroupsOfANodeOfExpertsAreThoseOfTheirReplicas) {
  const auto model = core::load_model("mixtral-8x7b");
  Question question;
  question.model = &model, question.gpus = 16, question.global_batch = 16, question.seq = 4096, question.recipe = "bf16";
  question.fixed = core::parse_plan("tp=1 cp=1 pp=1 ep=2 etp=1 mb=1 zero=1 expert-shard=p:none,g:none,o:node", "--fix");
  question.gpus_per_node = 8;
  const Space space(question, axes_of(question));
  ASSERT_EQ(space.units().size(), 1U);
  EXPECT_EQ(space.units().front().plan.expert_shard.optimizer, 4);
}

// A group that divides the replicas of one degree and not of another is refused there alone.
TEST(Space, RefusesGroupsWhereTheyDoNotDivide) {
  const auto model = core::load_model("tiny-llama");
  Question question;
  question.model = &model, question.gpus = 8, question.global_batch = 8, question.seq = 64, question.recipe = "bf16";
  question.fixed = core::parse_plan("shard=p:none,g:none,o:8 mb=1 cp=1 pp=1 schedule=1f1b", "--fix");
  const Space space(question, axes_of(question));
  std::set<std::int64_t> tp;
  for (const auto& unit : space.units()) tp.insert(unit.plan.tp);
  EXPECT_TRUE(tp.contains(1));
  EXPECT_FALSE(tp.contains(2));
  EXPECT_TRUE(std::any_of(space.illegal().begin(), space.illegal().end(),
                          [](const auto& e) { return e.first.starts_with("zero: shard=o:N does not divide"); }));
}

}  // namespace
}  // namespace planner
