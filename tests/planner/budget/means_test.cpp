#include "planner/budget/means.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planner {
namespace {

Means means_of(Budget::Kind kind, double amount) { return {{kind, amount}, 100, 4e6, 2.0, {}}; }

// A step of 4e6 tokens takes 10 s: 86,400 / 10 x 4e6 tokens a day.
constexpr double tokens_a_day = 34.56e9;

TEST(Means, DaysBuyTokens) {
  const auto t = *training_for(means_of(Budget::Kind::days, 30), 7e9, 10.0);
  EXPECT_DOUBLE_EQ(t.tokens, 30 * tokens_a_day);
  EXPECT_DOUBLE_EQ(*t.usd, 30 * 24 * 100 * 2.0);
  EXPECT_DOUBLE_EQ(t.flops, 6 * 7e9 * 30 * tokens_a_day);
}

// What days cost buys the same days.
TEST(Means, DollarsAndDaysAgree) {
  const auto by_days = *training_for(means_of(Budget::Kind::days, 12.5), 7e9, 10.0);
  const auto by_usd = *training_for(means_of(Budget::Kind::usd, *by_days.usd), 7e9, 10.0);
  EXPECT_DOUBLE_EQ(by_usd.days, 12.5);
  EXPECT_DOUBLE_EQ(by_usd.tokens, by_days.tokens);
}

TEST(Means, FlopsBuyTokensWhateverTheStep) {
  const auto means = means_of(Budget::Kind::flops, 6e21);
  EXPECT_DOUBLE_EQ(training_for(means, 1e9, 10.0)->tokens, 1e12);
  EXPECT_DOUBLE_EQ(training_for(means, 1e9, 20.0)->tokens, 1e12);
  EXPECT_DOUBLE_EQ(training_for(means, 1e9, 20.0)->days, 2.0 * training_for(means, 1e9, 10.0)->days);
}

// 2 N D FLOPs at 2e14 a second: 2 x 7e9 x 1e12 / 2e14 = 7e7 GPU-seconds.
TEST(Means, ServingIsPaidFromTheSameBudget) {
  auto means = means_of(Budget::Kind::days, 30);
  means.serving = {1e12, 2e14};
  const auto t = *training_for(means, 7e9, 10.0);
  EXPECT_DOUBLE_EQ(t.serving_gpu_days, 7e7 / 86400);
  EXPECT_DOUBLE_EQ(t.days, 30 - 7e7 / 86400 / 100);
  EXPECT_DOUBLE_EQ(*t.usd, 30 * 24 * 100 * 2.0);
  EXPECT_FALSE(training_for(means, 7e12, 10.0));
  auto flops = means_of(Budget::Kind::flops, 6e21);
  flops.serving = {1e12, 2e14};
  EXPECT_DOUBLE_EQ(training_for(flops, 1e9, 10.0)->tokens, (6e21 - 2e21) / 6e9);
}

TEST(Means, LongestStepBuysItsTokens) {
  for (const auto kind : {Budget::Kind::days, Budget::Kind::usd}) {
    const auto means = means_of(kind, 3000);
    EXPECT_DOUBLE_EQ(training_for(means, 7e9, longest_step(means, 7e9, 5e11))->tokens, 5e11);
  }
  const auto flops = means_of(Budget::Kind::flops, 6e21);
  EXPECT_TRUE(std::isinf(longest_step(flops, 1e9, 1e12)));
  EXPECT_EQ(longest_step(flops, 1e9, 1.01e12), 0.0);
}

}  // namespace
}  // namespace planner
