// The choice of a size against what formulas say, with step times that formulas give.
#include "planner/budget/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "planner/budget/interval.h"
#include "planner/budget/verdict.h"
#include "tests/planner/budget/laws.h"

namespace planner {
namespace {

constexpr double flops_per_s = 4e14;  // of a GPU, whatever the model

RecipeLoss recipe(const std::string& name, double low, double value, double high) {
  return {name, {value, low, high}, {1.0, 1.0, 1.0}, "", ""};
}

BudgetQuestion question_of(double days, double step = 1.05, double low = 1e9, double high = 1e12) {
  BudgetQuestion q;
  q.law = chinchilla_model();
  for (double N = low; N < high; N *= step) q.sizes.push_back({"", N, N, N});
  q.pools.push_back({{{Budget::Kind::days, days}, 512, 4e6, 3.0, {}}, recipe("bf16", 1, 1, 1)});
  return q;
}

double flat_step(const BudgetQuestion& q, std::size_t pool, std::size_t size) {
  const auto& means = q.pools[pool].means;
  return 6.0 * q.sizes[size].N * means.tokens_per_step / (static_cast<double>(means.gpus) * flops_per_s);
}

// Steps by a formula, a tenth above their bound or more; counts the sizes that are planned.
struct FakeTimes {
  std::function<double(std::size_t pool, std::size_t size)> step;
  mutable std::atomic<int> planned{0};

  StepTimes times() const {
    const auto best = [this](std::size_t pool, std::size_t size, std::optional<double> limit) -> std::optional<Throughput> {
      ++planned;
      Throughput t;
      t.step_s = step(pool, size), t.low_s = 0.9 * t.step_s, t.high_s = 1.2 * t.step_s;
      if (limit && t.step_s > *limit) return std::nullopt;
      return t;
    };
    const auto least = [this](std::size_t pool, std::size_t size) { return step(pool, size) / 1.1; };
    return {best, least, step};
  }
};

FakeTimes flat(const BudgetQuestion& q) {
  return {[&q](std::size_t pool, std::size_t size) { return flat_step(q, pool, size); }};
}

// Jagged steps, as those of plans are: up to half as long again.
FakeTimes jagged(const BudgetQuestion& q) {
  return {[&q](std::size_t pool, std::size_t size) {
    return flat_step(q, pool, size) * (1.25 + 0.25 * std::sin(7.0 * static_cast<double>(size) + static_cast<double>(pool)));
  }};
}

// C = 512 x 30 days x 4e14 FLOP/s; N* = G (C / 6)^a.
TEST(Choose, FindsTheClosedFormWhereThroughputIsFlat) {
  const Chinchilla law;
  const auto q = question_of(30);
  const double C = 512 * 30 * 86400.0 * flops_per_s;
  const auto fake = flat(q);
  const auto chosen = choose(q, fake.times());
  const auto& best = chosen.choices[*best_of(chosen)];
  EXPECT_LE(std::abs(std::log(q.sizes[best.size].N / law.best_parameters(C))), std::log(1.05) / 2 + 1e-9);
  EXPECT_NEAR(best.training.tokens * 6.0 * q.sizes[best.size].N / C, 1.0, 1e-12);
  EXPECT_GE(best.loss, law.best_loss(C));
  EXPECT_NEAR(best.loss, law.best_loss(C), 1e-4);
}

TEST(Choose, PrunedIsExhaustive) {
  for (const double days : {1.0, 30.0, 300.0}) {
    auto q = question_of(days);
    q.pools.push_back(q.pools.front());
    q.pools.back().recipe = recipe("low", 0.6, 0.7, 0.8);
    const auto fake = jagged(q), slow = jagged(q);
    const auto pruned = choose(q, fake.times());
    const auto all = choose(q, slow.times(), {false, 5e-4});
    EXPECT_EQ(slow.planned, static_cast<int>(2 * q.sizes.size()));
    EXPECT_LT(fake.planned, slow.planned / 2);
    const auto& best = pruned.choices[*best_of(pruned)];
    const auto& true_best = all.choices[*best_of(all)];
    EXPECT_EQ(best.size, true_best.size);
    EXPECT_EQ(best.loss, true_best.loss);
    for (std::size_t pool = 0; pool < 2; ++pool) {
      EXPECT_EQ(pruned.choices[*best_of_pool(pruned, pool)].size, all.choices[*best_of_pool(all, pool)].size);
    }
    // All within the slack are there.
    for (const auto& c : all.choices) {
      const auto same = [&](const SizeChoice& p) { return p.pool == c.pool && p.size == c.size && p.loss == c.loss; };
      if (c.loss <= true_best.loss * (1.0 + 5e-4)) {
        EXPECT_TRUE(std::any_of(pruned.choices.begin(), pruned.choices.end(), same)) << c.size;
      }
    }
    // What is said of the others holds.
    EXPECT_EQ(pruned.choices.size() + pruned.bounded.size(), 2 * q.sizes.size());
    for (const auto& b : pruned.bounded) {
      const auto it = std::find_if(all.choices.begin(), all.choices.end(),
                                   [&](const SizeChoice& c) { return c.pool == b.pool && c.size == b.size; });
      EXPECT_GE(it->loss, *b.loss_at_least - 1e-12);
    }
  }
}

TEST(Choose, MoreDaysNeverRaiseTheLoss) {
  double before = 1e9;
  for (double days = 0.5; days < 500; days *= 1.7) {
    const auto q = question_of(days, 1.3);
    const auto fake = jagged(q);
    const auto chosen = choose(q, fake.times());
    const double loss = chosen.choices[*best_of(chosen)].loss;
    EXPECT_LT(loss, before) << days;
    before = loss;
  }
}

// Sardana et al. 2024: at the optimum alpha A N^-alpha / (beta B D^-beta) = 1 + D_served / (3 D); here serving runs as fast as
// training.
TEST(Choose, ServingAsksForSmallerModels) {
  const Chinchilla law;
  auto q = question_of(30, 1.01);
  q.pools.front().means.serving = {5e12, flops_per_s};
  const auto fake = flat(q);
  const auto chosen = choose(q, fake.times());
  const auto& best = chosen.choices[*best_of(chosen)];
  const double N = q.sizes[best.size].N, D = best.training.tokens;
  const double ratio = law.alpha * law.A * std::pow(N, -law.alpha) / (law.beta * law.B * std::pow(D, -law.beta));
  EXPECT_NEAR(ratio / (1.0 + 5e12 / (3.0 * D)), 1.0, 0.02);
}

TEST(Choose, SaysWhereNothingFits) {
  const auto q = question_of(30, 3.0);
  StepTimes times = flat(q).times();
  const auto fake = flat(q);
  times = fake.times();
  times.best = [](std::size_t, std::size_t, std::optional<double>) { return std::optional<Throughput>(); };
  const auto chosen = choose(q, times);
  EXPECT_FALSE(best_of(chosen));
  ASSERT_EQ(chosen.bounded.size(), q.sizes.size());
  EXPECT_EQ(chosen.bounded.front().why, "no plan fits");
}

TEST(Choose, FrontHoldsWhatNothingBeats) {
  auto q = question_of(30, 1.2);
  q.pools.push_back(q.pools.front());
  q.pools.back().means.gpus = 128;
  for (auto& pool : q.pools) pool.means.budget = {Budget::Kind::usd, 1e6};
  const auto fake = flat(q);
  const auto chosen = choose(q, fake.times());
  const auto front = pareto_of(chosen);
  // The same dollars in four times the days: with the same loss, only the faster is on the front.
  ASSERT_EQ(front.size(), 1U);
  EXPECT_EQ(chosen.choices[front.front()].pool, 0U);
}

// Draws that move E alone do not move the optimum; draws that move A do.
TEST(BudgetInterval, OptimumMovesWithTheLaw) {
  auto q = question_of(30);
  for (const double shift : {-0.02, 0.0, 0.02}) {
    Chinchilla law;
    law.E += shift;
    q.law.draws.emplace_back(law);
  }
  const auto fake = flat(q);
  auto chosen = choose(q, fake.times());
  const auto still = *optimum_spread(q, chosen, fake.times(), 0);
  EXPECT_EQ(still.parameters_low, still.parameters_high);
  Chinchilla larger;
  larger.A *= 1.5;
  q.law.draws.emplace_back(larger);
  const auto moved = *optimum_spread(q, chosen, fake.times(), 0);
  EXPECT_GT(moved.parameters_high, moved.parameters_low);
  // N* goes with A^(1/(alpha + beta)); one of four draws, at 95 % interpolated 0.85 of the way.
  const double factor = std::pow(1.5, 1.0 / (larger.alpha + larger.beta));
  EXPECT_NEAR(moved.parameters_high / still.parameters_high, 1.0 + 0.85 * (factor - 1.0), 0.06);
}

TEST(BudgetInterval, LossLiesWithinIt) {
  auto q = question_of(30);
  const auto fake = flat(q);
  auto chosen = choose(q, fake.times());
  add_intervals(q, chosen);
  const Chinchilla law;
  for (const auto& c : chosen.choices) {
    const double N = q.sizes[c.size].N;
    EXPECT_NEAR(c.loss_low, law(N, c.training.tokens / 0.9), 1e-12);
    EXPECT_NEAR(c.loss_high, law(N, c.training.tokens / 1.2), 1e-12);
  }
}

// With sizes free, N eff_N parameters for N: 1 / eff_N times the speed are needed.
TEST(Verdict, LowPrecisionPaysWhereItIsFasterThanItsLoss) {
  for (const auto& [speed, expected] : {std::pair{1.8, Pays::yes}, std::pair{1.5, Pays::undecided}, std::pair{1.1, Pays::no}}) {
    auto q = question_of(30);
    q.pools.push_back(q.pools.front());
    q.pools.back().recipe = recipe("low", 0.6, 0.7, 0.8);
    const FakeTimes fake{
        [&q, s = speed](std::size_t pool, std::size_t size) { return flat_step(q, pool, size) / (pool == 1 ? s : 1.0); }};
    const auto chosen = choose(q, fake.times());
    const auto verdicts = verdicts_of(q, chosen, fake.times(), SizeIs::free);
    ASSERT_EQ(verdicts.size(), 1U);
    EXPECT_NEAR(verdicts.front().speed, speed, 1e-12);
    EXPECT_NEAR(verdicts.front().asked_low, 1.0 / 0.8, 1e-12);
    EXPECT_NEAR(verdicts.front().asked_high, 1.0 / 0.6, 1e-12);
    EXPECT_EQ(verdicts.front().pays, expected);
    // The same by the losses of the best sizes, at the middle of the range (1 / 0.7 = 1.43).
    const double base = chosen.choices[*best_of_pool(chosen, 0)].loss, low = chosen.choices[*best_of_pool(chosen, 1)].loss;
    EXPECT_EQ(low<base, speed> 1.0 / 0.7);
  }
}

// At 8e9 parameters and 1e12 tokens 0.64 of the parameters ask for 3.2 times the tokens, where more parameters would do
// at 1.56.
TEST(Verdict, OfOneSizeAsksForTokens) {
  for (const auto& [speed, expected] : {std::pair{2.0, Pays::no}, std::pair{3.5, Pays::yes}}) {
    auto q = question_of(30);
    q.sizes = {{"", 8e9, 8e9, 8e9}};
    q.pools.push_back(q.pools.front());
    q.pools.back().recipe = recipe("low", 0.64, 0.64, 0.64);
    const auto& means = q.pools.front().means;
    const double step = 30 * 86400.0 * means.tokens_per_step / 1e12;
    const FakeTimes fake{[step, s = speed](std::size_t pool, std::size_t) { return pool == 1 ? step / s : step; }};
    const auto chosen = choose(q, fake.times());
    const auto verdict = verdicts_of(q, chosen, fake.times(), SizeIs::fixed).front();
    EXPECT_NEAR(verdict.asked_low, 3.2, 0.05);
    EXPECT_EQ(verdict.pays, expected);
    // Speed does not change what FLOPs buy: the rule alone judges.
    for (auto& pool : q.pools) pool.means.budget = {Budget::Kind::flops, 6.0 * 8e9 * 1e12};
    EXPECT_EQ(verdicts_of(q, choose(q, fake.times()), fake.times(), SizeIs::fixed).front().pays, expected);
  }
}

// What is served costs by its parameters, and few bits buy back their loss with parameters: faster by what the rule asks for
// (1 / 0.7) is not enough.
TEST(Verdict, CountsServing) {
  for (const double served : {0.0, 5e13}) {
    auto q = question_of(300, 1.02);
    q.pools.front().means.serving = {served, flops_per_s};
    q.pools.push_back(q.pools.front());
    q.pools.back().recipe = recipe("low", 0.7, 0.7, 0.7);
    const FakeTimes fake{
        [&q](std::size_t pool, std::size_t size) { return flat_step(q, pool, size) / (pool == 1 ? 1.05 / 0.7 : 1.0); }};
    const auto verdict = verdicts_of(q, choose(q, fake.times()), fake.times(), SizeIs::free).front();
    EXPECT_GT(verdict.speed, verdict.asked_high);
    EXPECT_EQ(verdict.pays, served > 0.0 ? Pays::no : Pays::yes);
  }
}

}  // namespace
}  // namespace planner
