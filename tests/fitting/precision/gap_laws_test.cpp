// Laws of few bits side by side: their gaps in percent as computed elsewhere from the published constants, printed to two decimals.
#include "fitting/precision/gap_laws.h"

#include <gtest/gtest.h>

namespace fitting {
namespace {

struct Printed {
  const char* recipe;
  double N, D, kumar, sun, chen, eff_64;
};

constexpr const char* wang = "w=e2m1/per-channel;a=e2m1/per-token";
constexpr const char* quartet = "w,a=MXFP4 QuEST+Hadamard;g=MXFP4 SR+Hadamard;all linears";
constexpr const char* nvfp4 = "w=e2m1/16x16 e4m3+fp32;a,g=e2m1/1x16 e4m3+fp32";
constexpr const char* mxfp4 = "w,a,g=e2m1/1x32 e8m0";

TEST(GapLaws, StandSideBySide) {
  const Printed rows[] = {
      {wang, 1.3e9, 1e11, 4.65, 2.46, 2.61, 2.34},
      {wang, 7e9, 1e11, 2.07, 1.76, 2.06, 1.39},
      {quartet, 443068288, 4.3e10, 7.62, 0.72, 1.54, 3.11},
      {quartet, 6476005376, 9961472000, 2.05, 0.18, 0.80, 1.27},
      {"NVFP4 NVIDIA recipe", 1.9e9, 3.8e10, 3.83, 0.41, 1.00, 2.01},
      {nvfp4, 8e9, 1e12, 1.97, 1.79, 1.08, 1.40},
      {mxfp4, 8e9, 1e12, 1.97, 2.23, 1.28, 1.40},
      {nvfp4, 1.2e10, 1e13, 1.62, 5.47, 1.22, 1.26},
  };
  for (const auto& row : rows) {
    const auto laws = laws_side_by_side(row.N, row.D, read_recipe(row.recipe));
    ASSERT_TRUE(laws.kumar && laws.sun && laws.chen && laws.eff_64) << row.recipe;
    EXPECT_NEAR(*laws.kumar, row.kumar, 0.006) << row.recipe << " " << row.N;
    EXPECT_NEAR(*laws.sun, row.sun, 0.006) << row.recipe << " " << row.N;
    EXPECT_NEAR(*laws.chen, row.chen, 0.006) << row.recipe << " " << row.N;
    EXPECT_NEAR(*laws.eff_64, row.eff_64, 0.006) << row.recipe << " " << row.N;
  }
}

TEST(GapLaws, OfSmallModels) {
  const auto at_25 = laws_side_by_side(30482560, 749993984, read_recipe("NVFP4 NVIDIA recipe")), at_778 = laws_side_by_side(102777856, 79999795200, read_recipe("NVFP4 NVIDIA recipe"));
  EXPECT_NEAR(*at_25.kumar, 20.6, 0.05);
  EXPECT_NEAR(*at_25.sun, 0.08, 0.006);
  EXPECT_NEAR(*at_25.chen, 1.10, 0.006);
  EXPECT_NEAR(*at_778.kumar, 14.7, 0.05);
  EXPECT_NEAR(*at_778.sun, 1.04, 0.006);
  EXPECT_NEAR(*at_778.chen, 1.71, 0.006);
}

// Kumar et al. with 8 and 8 bits: 0.43 % at OLMo-1B, 0.32 % of 2.4e9 active parameters.
TEST(GapLaws, OfEightBits) {
  EXPECT_NEAR(*gap_by_kumar(1.18e9, 2.2e10, 8, 8)->percent.value, 0.43, 0.006);
  EXPECT_NEAR(*gap_by_kumar(2.4e9, 1.33e12, 8, 8)->percent.value, 0.32, 0.006);
}

TEST(GapLaws, HaveNoValueWhereActivationsHaveTooFewBits) { EXPECT_FALSE(gap_by_kumar(1e9, 1e11, 4, 3)); }

// 0.64 of 8e9 parameters on the refitted constants: 0.0291237522 nats (1e-6: the data have more digits).
TEST(GapLaws, OfFactors) {
  RecipeEffect effect;
  effect.parameters = {0.64, 0.57, 0.70};
  const auto gap = gap_by_factors("effective-epoch", 8e9, 1e12, effect, RecipeEffect{});
  EXPECT_NEAR(*gap.nats.value, 0.0291237522, 1e-6);
  EXPECT_LT(gap.nats.low, *gap.nats.value);
  EXPECT_GT(gap.nats.high, *gap.nats.value);
  EXPECT_NEAR(*gap_by_factors("effective-epoch", 8e9, 1e12, effect, effect).nats.value, 0.0, 1e-12);
}

// Chen et al.: W4A4 in groups of 32 at 5.94e8 parameters and 1e11 tokens, 0.0441047667 nats; range 0.7 to 1.4 times.
TEST(GapLaws, OfQuantisationAwareTraining) {
  const auto gap = gap_by_chen("chen-w4a4", 5.94e8, 1e11, 32);
  EXPECT_NEAR(*gap.nats.value, 0.0441047667, 1e-9);
  EXPECT_NEAR(gap.nats.low, 0.7 * 0.0441047667, 1e-9);
  EXPECT_NEAR(gap.nats.high, 1.4 * 0.0441047667, 1e-9);
}

// A width of 2048 for 1.3e9 parameters and 4096 for 7e9, as such models have.
TEST(GapLaws, TakeAChannelForTheWidth) {
  TensorFormat format;
  format.sharing = Sharing::channel;
  EXPECT_EQ(*group_of(format, 1.3e9), 2048.0);
  EXPECT_EQ(*group_of(format, 7e9), 4096.0);
  format.sharing = Sharing::tensor;
  EXPECT_FALSE(group_of(format, 7e9));
}

}  // namespace
}  // namespace fitting
