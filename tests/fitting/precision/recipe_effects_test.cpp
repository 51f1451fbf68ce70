#include "fitting/precision/recipe_effects.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"

namespace fitting {
namespace {

TEST(RecipeEffects, KnowEveryRecipeOnce) {
  std::set<std::string> names;
  for (const auto& effect : recipe_effects()) {
    EXPECT_TRUE(names.insert(effect.name).second) << effect.name;
    EXPECT_FALSE(effect.source.empty()) << effect.name;
  }
  EXPECT_TRUE(names.contains("nvfp4"));
  EXPECT_TRUE(names.contains("mxfp4-quartet"));
}

TEST(RecipeEffects, FlagEveryRecipeOfFourBits) {
  for (const auto& effect : recipe_effects()) {
    EXPECT_TRUE(effect.name.find("fp4") == std::string::npos || !effect.flag.empty()) << effect.name;
  }
}

TEST(RecipeEffects, HaveNoUnknownNames) {
  try {
    recipe_effect("nvpf4");
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("nearest is nvfp4"), std::string::npos) << error.what();
  }
}

// 0.96 x 0.955 = 0.9168, ends 0.90 x 0.92 = 0.828 and 1.
TEST(RecipeEffects, MultiplyWhereTwoAreUsed) {
  const auto both = combined(recipe_effect("fp8"), recipe_effect("bf16-adam8bit"));
  EXPECT_NEAR(both.parameters.value, 0.9168, 1e-12);
  EXPECT_NEAR(both.parameters.low, 0.828, 1e-12);
  EXPECT_NEAR(both.parameters.high, 1.0, 1e-12);
}

// The gap that 0.64 of 8e9 parameters costs (0.0291237522 nats on the refitted Chinchilla constants) implies 0.64 again.
TEST(RecipeEffects, FollowFromAGap) {
  EXPECT_NEAR(effective_parameters(0.0291237522, 8e9, 477.8259, 0.3473105), 0.64, 1e-8);
  EXPECT_NEAR(effective_parameters(0.0, 8e9, 477.8259, 0.3473105), 1.0, 1e-12);
}

}  // namespace
}  // namespace fitting
