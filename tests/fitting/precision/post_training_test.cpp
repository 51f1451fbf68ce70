#include "fitting/precision/post_training.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace fitting {
namespace {

// 0.55 (0.35 to 1) of the 0.0489673790 nats that Kumar et al. say of 6.74e9 parameters, 2e12 tokens, 4 bits.
TEST(PostTraining, FollowsTheLawBelow13e9) {
  const auto gap = post_training_gap(post_training("weights-int4"), 6.74e9, 2e12);
  ASSERT_TRUE(gap && gap->value);
  EXPECT_NEAR(*gap->value, 0.55 * 0.0489673790, 1e-10);
  EXPECT_NEAR(gap->low, 0.35 * 0.0489673790, 1e-10);
  EXPECT_NEAR(gap->high, 0.0489673790, 1e-10);
  EXPECT_NEAR(*post_training_gap(post_training("weights-int3"), 6.74e9, 2e12)->value, 0.15, 0.005);
}

TEST(PostTraining, IsFlatFrom13e9) {
  for (const double N : {1.3e10, 3.25e10, 4.05e11}) {
    const auto gap = post_training_gap(post_training("weights-int4"), N, std::nullopt);
    ASSERT_TRUE(gap && gap->value);
    EXPECT_EQ(*gap->value, 0.025);
    EXPECT_EQ(gap->low, 0.017);
    EXPECT_EQ(gap->high, 0.045);
  }
  EXPECT_EQ(*post_training_gap(post_training("weights-int3"), 1.3e10, 2e12)->value, 0.12);
  EXPECT_EQ(post_training_law(post_training("weights-int4"), 1.3e10), "");
  EXPECT_EQ(post_training_law(post_training("weights-int4"), 7e9), "kumar-ptq-published");
}

TEST(PostTraining, NeedsSizeAndTokensOfTheLaw) {
  EXPECT_FALSE(post_training_gap(post_training("weights-int4"), 7e9, std::nullopt));
  EXPECT_FALSE(post_training_gap(post_training("weights-int4"), std::nullopt, 2e12));
}

TEST(PostTraining, KnowsCachesAndBases) {
  EXPECT_EQ(*post_training_gap(post_training("kv-8bit"), std::nullopt, std::nullopt)->value, 0.004);
  EXPECT_FALSE(post_training_gap(post_training("kv-2bit"), std::nullopt, std::nullopt)->value);
  const auto nf4 = post_training_gap(post_training("lora-nf4"), std::nullopt, std::nullopt), fp4 = post_training_gap(post_training("lora-fp4"), std::nullopt, std::nullopt);
  EXPECT_LT(*nf4->value, *fp4->value);   // the code book matters, not the bits alone
  for (const auto& choice : post_training_choices()) {
    EXPECT_FALSE(choice.source.empty()) << choice.name;
    EXPECT_LE(choice.gap.low, choice.gap.high) << choice.name;
  }
  EXPECT_THROW(post_training("kv-8bits"), core::InputError);
}

}  // namespace
}  // namespace fitting
