#include "planner/budget/precision.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/planner/budget/laws.h"

namespace planner {
namespace {

RecipeLoss with_parameters(double eff) { return {"made", {eff, eff, eff}, {1.0, 1.0, 1.0}, "", ""}; }

TEST(Precision, CostsWhatFewerParametersCost) {
  const Chinchilla law;
  const auto low = under(law, with_parameters(0.64));
  EXPECT_NEAR(low(8e9, 1e12, 1e12) - law(8e9, 1e12), 0.0291237522, 1e-9);
}

// M_N, M_R, M_D on the refitted constants, as tabled for the rule that low precision pays where it is faster by more.
struct Row {
  double N, D, eff, parameters, both, tokens;  // tokens 0: not recoverable
};
class PaybackTable : public testing::TestWithParam<Row> {};
TEST_P(PaybackTable, FindsTheComputeThatBringsTheLossBack) {
  const auto& row = GetParam();
  const auto p = payback(Chinchilla{}, with_parameters(row.eff), End::value, row.N, row.D);
  EXPECT_NEAR(p.parameters, row.parameters, 0.005);
  EXPECT_NEAR(*p.both, row.both, 0.05);
  EXPECT_EQ(p.tokens.has_value(), row.tokens > 0.0);
  if (p.tokens) {
    EXPECT_NEAR(*p.tokens / row.tokens, 1.0, 0.02);
  }
}
INSTANTIATE_TEST_SUITE_P(Precision, PaybackTable,
                         testing::Values(Row{8e9, 1.6e11, 0.97, 1.03, 1.03, 1.03}, Row{8e9, 1.6e11, 0.64, 1.56, 1.59, 1.70},
                                         Row{8e9, 1e12, 0.64, 1.56, 1.83, 3.2}, Row{8e9, 1.5e13, 0.97, 1.03, 1.05, 1.18},
                                         Row{8e9, 1.5e13, 0.64, 1.56, 2.1, 0.0}, Row{70e9, 1.5e13, 0.64, 1.56, 1.9, 4.9}));

// What comes back is a loss as low: the definition.
TEST(Precision, PaybackBringsTheLossBack) {
  const Chinchilla law;
  const auto recipe = with_parameters(0.8);
  const auto low = under(law, recipe);
  const double N = 2e9, D = 1e11;
  const auto p = payback(law, recipe, End::value, N, D);
  EXPECT_NEAR(low(N * p.parameters, D, D), law(N, D), 1e-12);
  EXPECT_NEAR(low(N * std::sqrt(*p.both), D * std::sqrt(*p.both), D), law(N, D), 1e-9);
  EXPECT_NEAR(low(N, D * *p.tokens, D), law(N, D), 1e-9);
}

TEST(Precision, KnowsWhatRecipesCost) {
  EXPECT_TRUE(recipe_loss("bf16").is_baseline());
  const auto nvfp4 = recipe_loss("nvfp4");
  EXPECT_FALSE(nvfp4.is_baseline());
  EXPECT_LT(nvfp4.parameters.low, nvfp4.parameters.value);
  EXPECT_LT(nvfp4.parameters.value, nvfp4.parameters.high);
  EXPECT_FALSE(nvfp4.flag.empty());
  EXPECT_THROW(recipe_loss("bitnet"), core::InputError);
}

}  // namespace
}  // namespace planner
