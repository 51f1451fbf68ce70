#include "fitting/precision/payoff.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace fitting {
namespace {

LossTerms refitted() { return loss_terms(fitted_law("chinchilla-epoch")); }

struct Printed {
  double N, D, eff_N, both, tokens;   // tokens 0: none brings the loss back
  double half;                        // half a unit of the last digit of `tokens`
};

// Factors of compute on the refitted Chinchilla law: FP8 0.97 and NVFP4 0.64 at 8B and 70B; two digits for NVFP4's tokens.
TEST(Payoff, CostsWhatTheRefittedLawSays) {
  const Printed table[] = {
      {8e9, 1.6e11, 0.97, 1.03, 1.03, 0.005}, {8e9, 1e12, 0.97, 1.04, 1.06, 0.005}, {8e9, 1.5e13, 0.97, 1.05, 1.18, 0.005}, {70e9, 1.5e13, 0.97, 1.04, 1.08, 0.005},
      {8e9, 1.6e11, 0.64, 1.59, 1.70, 0.005}, {8e9, 1e12, 0.64, 1.83, 3.2, 0.05},   {8e9, 1.5e13, 0.64, 2.1, 0.0, 0.0},      {70e9, 1.5e13, 0.64, 1.9, 4.9, 0.05},
  };
  for (const auto& row : table) {
    const auto back = payback(refitted(), row.N, row.D, row.eff_N, 1.0);
    EXPECT_NEAR(back.parameters, row.eff_N == 0.97 ? 1.03 : 1.5625, 0.005) << row.N << " " << row.D;
    EXPECT_NEAR(back.both, row.both, row.both >= 1.85 ? 0.05 : 0.005) << row.N << " " << row.D << " " << row.eff_N;
    ASSERT_EQ(back.tokens.has_value(), row.tokens > 0.0) << row.N << " " << row.D << " " << row.eff_N;
    EXPECT_NEAR(back.tokens.value_or(0.0), row.tokens, row.half) << row.N << " " << row.D << " " << row.eff_N;
  }
}

// Each factor put back into the law gives the loss without the recipe.
TEST(Payoff, BringsTheLossBack) {
  const auto law = refitted();
  const double N = 8e9, D = 1e12, eff_N = 0.7, eff_D = 0.9;
  const auto loss = [&](double n, double d) { return law.A * std::pow(n, -law.alpha) + law.B * std::pow(d, -law.beta); };
  const auto back = payback(law, N, D, eff_N, eff_D);
  const double k = std::sqrt(back.both);
  EXPECT_NEAR(loss(k * N * eff_N, k * D * eff_D), loss(N, D), 1e-12);
  ASSERT_TRUE(back.tokens);
  EXPECT_NEAR(loss(N * eff_N, *back.tokens * D * eff_D), loss(N, D), 1e-12);
  EXPECT_NEAR(back.parameters, 1.0 / 0.63, 1e-12);
}

TEST(Payoff, CostsNothingInSixteenBits) {
  const auto back = payback(refitted(), 8e9, 1e12, 1.0, 1.0);
  EXPECT_EQ(back.parameters, 1.0);
  EXPECT_NEAR(back.both, 1.0, 1e-12);
  EXPECT_NEAR(*back.tokens, 1.0, 1e-12);
}

TEST(Payoff, TakesLawsOfOneFormAlone) {
  EXPECT_THROW(loss_terms(fitted_law("quartet-bf16")), core::InputError);
  EXPECT_THROW(loss_terms(fitted_law("kumar-published")), core::InputError);
  EXPECT_EQ(loss_terms(fitted_law("effective-epoch")).A, loss_terms(fitted_law("chinchilla-epoch")).A);
}

// 0.97 [0.94, 1]: M between 1 and 1.0638. 0.64 [0.57, 0.70]: between 1.43 and 1.75.
TEST(Payoff, IsUndecidedInsideTheRange) {
  EXPECT_EQ(worth_of_speed(1.10, recipe_effect("fp8-block")).worth, Worth::pays);
  EXPECT_EQ(worth_of_speed(1.04, recipe_effect("fp8-block")).worth, Worth::undecided);
  EXPECT_EQ(worth_of_speed(0.99, recipe_effect("fp8-block")).worth, Worth::does_not_pay);
  EXPECT_EQ(worth_of_speed(1.76, recipe_effect("nvfp4")).worth, Worth::pays);
  EXPECT_EQ(worth_of_speed(1.60, recipe_effect("nvfp4")).worth, Worth::undecided);
  EXPECT_EQ(worth_of_speed(1.42, recipe_effect("nvfp4")).worth, Worth::does_not_pay);
}

// 8B with 0.75 of a step in linear layers: MXFP8 1.8335 times as fast there, NVFP4 2.254 times as fast in all.
TEST(Payoff, RanksPlansByGain) {
  const double fp8 = speed_of_linears(0.75, 1.8335), fp4 = 2.254;
  EXPECT_NEAR(fp8, 1.517, 5e-4);
  EXPECT_NEAR(speed_of_linears(0.75, 3.0), 2.0, 1e-12);   // 0.25 + 0.75 / 3 = 0.5
  EXPECT_NEAR(worth_of_speed(fp8, recipe_effect("mxfp8")).gain, 1.47, 0.005);
  EXPECT_NEAR(worth_of_speed(fp4, recipe_effect("nvfp4")).gain, 1.44, 0.005);
  EXPECT_NEAR(speed_with_late_switch(fp4, 0.18), 1.839, 5e-4);
  EXPECT_NEAR(worth_of_speed(speed_with_late_switch(fp4, 0.18), recipe_effect("nvfp4-late16")).gain, 1.78, 0.005);
  EXPECT_NEAR(speed_with_late_switch(fp4, 0.06), 2.097, 1e-3);
  EXPECT_NEAR(worth_of_speed(speed_with_late_switch(fp4, 0.06), recipe_effect("nvfp4-late16-forward")).gain, 1.76, 0.005);
}

// ln M = 0.31 a percent: 1.5 % is 1.6 times the tokens, 0.1 % 1.03 and 0.25 % 1.08.
TEST(Payoff, HasAMeasuredPriceOfLoss) {
  EXPECT_NEAR(std::log(tokens_at_measured_price(1.0)), 0.31, 0.005);
  EXPECT_NEAR(tokens_at_measured_price(1.5), 1.6, 0.05);
  EXPECT_NEAR(tokens_at_measured_price(0.1), 1.03, 0.005);
  EXPECT_NEAR(tokens_at_measured_price(0.25), 1.08, 0.005);
}

// int4 after training of 7B (0.027 nats) is as good as 0.67 of its parameters in 16 bits.
TEST(Payoff, ComparesQuantisedModelsWithSmallerOnes) { EXPECT_NEAR(equal_parameters(refitted(), 7e9, 0.027) / 7e9, 0.67, 0.005); }

}  // namespace
}  // namespace fitting
