// The choice of a size with step times of the search itself, on machines small enough to plan every size.
#include "planner/budget/planned.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/budget/report.h"
#include "planner/parallel.h"

namespace planner {
namespace {

BudgetRequest small_request() {
  BudgetRequest r;
  r.machine.gpu = "h100-sxm", r.machine.global_batch = 64;
  r.gpus = {8};
  r.budget = {Budget::Kind::days, 2.0};
  r.sizes = "1B..16B";
  r.points = 8;
  return r;
}

TEST(PlannedBudget, PrunedIsExhaustive) {
  auto request = small_request();
  const auto setup = set_up(request);
  const auto pruned = answer_budget(setup), all = answer_budget(setup, {false, 5e-4});
  ASSERT_TRUE(pruned.best && all.best);
  ASSERT_EQ(setup.question.pools.size(), 2U);  // bf16 and fp8: Hopper has no nvfp4
  EXPECT_LT(pruned.chosen.choices.size(), all.chosen.choices.size());
  for (std::size_t pool = 0; pool < 2; ++pool) {
    const auto& a = pruned.chosen.choices[*best_of_pool(pruned.chosen, pool)];
    const auto& b = all.chosen.choices[*best_of_pool(all.chosen, pool)];
    EXPECT_EQ(a.size, b.size);
    EXPECT_EQ(core::to_text(a.throughput.plan), core::to_text(b.throughput.plan));
    EXPECT_EQ(a.loss, b.loss);
  }
  // What was left out is as bad as is said.
  for (const auto& s : pruned.chosen.bounded) {
    for (const auto& c : all.chosen.choices) {
      if (c.pool != s.pool || c.size != s.size || !s.loss_at_least) continue;
      EXPECT_GE(c.loss, *s.loss_at_least);
    }
  }
}

TEST(PlannedBudget, NoPlanIsFasterThanTheBound) {
  auto request = small_request();
  const auto setup = set_up(request);
  const PlannedTimes planned(setup.pools, setup.models);
  const auto times = planned.times();
  for (std::size_t pool = 0; pool < setup.pools.size(); ++pool) {
    const auto found = times.best(pool, 2, std::nullopt);
    ASSERT_TRUE(found);
    EXPECT_LT(times.least(pool, 2), found->step_s);
    // GEMMs of no format reach its dense peak.
    EXPECT_GT(times.least(pool, 2), 1.1 * step_at_peak(setup.pools[pool].setting, setup.models[2], request.machine.global_batch));
    // The limit is kept, and what is as fast as it is found.
    EXPECT_TRUE(times.best(pool, 2, found->step_s));
    EXPECT_FALSE(times.best(pool, 2, 0.99 * found->step_s));
  }
}

TEST(SearchBudget, AnswersTheSameOnAnyNumberOfThreads) {
  std::vector<std::string> answers;
  for (const int threads : {1, 4}) {
    auto request = small_request();
    request.points = 3, request.recipes = {"bf16"};
    const auto setup = set_up(request);
    BudgetAnswer answer;
    on_threads(threads, [&] { answer = answer_budget(setup); });
    answers.push_back(budget_json({request, setup, answer, true}));
  }
  EXPECT_EQ(answers[0], answers[1]);
}

// A model by name takes its own sequence length, and low precision must make up for its loss with tokens alone.
TEST(PlannedBudget, TakesOneModel) {
  auto request = small_request();
  request.sizes.clear();
  request.model = "gpt2-xl";
  const auto setup = set_up(request);
  EXPECT_EQ(request.machine.seq, 1024);
  const auto answer = answer_budget(setup);
  ASSERT_EQ(answer.chosen.choices.size(), 2U);
  const auto& verdict = answer.verdicts.front();
  EXPECT_EQ(verdict.asked_high, verdict.needed_high.tokens);
}

// A multiple of the largest run is said as such: 1.3e22 FLOPs, 1.62e10 parameters.
TEST(PlannedBudget, SaysHowFarTheLawIsStretched) {
  LossModel law;
  law.N = LossModel::Range{1e8, 1e10}, law.D = LossModel::Range{1e9, 1e11}, law.C = LossModel::Range{1e18, 1e22};
  law.tokens_per_parameter = LossModel::Range{1, 340};
  EXPECT_TRUE(extrapolations(law, 1e9, 1e10, 6e19).empty());
  const auto far = extrapolations(law, 3e10, 1e13, 1.8e24);
  ASSERT_EQ(far.size(), 4U);
  EXPECT_NE(far[0].find("3 times the most"), std::string::npos) << far[0];
  EXPECT_NE(far[3].find("ranking"), std::string::npos) << far[3];
  EXPECT_NE(extrapolations(law, 1e7, 1e10, 6e18)[0].find("0.1 times the least"), std::string::npos);
}

}  // namespace
}  // namespace planner
