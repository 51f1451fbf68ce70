#pragma once

#include <string>

#include "fitting/precision/gap_rows.h"
#include "fitting/precision/recipe_effects.h"
#include "fitting/precision/recipe_text.h"

namespace fitting {

// What says what a row's recipe costs.
struct RecipeMatch {
  enum class By : std::uint8_t {
    nothing,        // `why_not` says why
    effect,         // factors, or a gap in percent, of `effect`
    kumar, chen,    // a law of bits
    post_training,  // the choice `name`
  } by = By::nothing;
  std::string name;      // of the effect, the law's constants or the choice
  RecipeEffect effect;
  std::string note;      // what was assumed
  std::string why_not;
};

// By the method of a row (training, QAT, PTQ, finetune) and what its recipe says. Never guesses: a recipe that no source covers
// matches nothing.
RecipeMatch match_recipe(const GapRow& row, const RecipeText& recipe);

// Of training alone: what a baseline of a row costs against 16 bits.
RecipeMatch match_training(const RecipeText& recipe);

// "bf16", "fp8 (e4m3 128 blocks)": one of data/precision.json.
RecipeEffect baseline_effect(const std::string& baseline);

}  // namespace fitting
