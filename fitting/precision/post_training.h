#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fitting/precision/recipe_effects.h"

namespace fitting {

// What a choice after or beside training costs: weights quantised, a cache of keys and values in few bits, a base under LoRA.
// data/post_training.json.
struct PostTraining {
  std::string name, tensor, unit;   // unit: nats (a token) or points (of a task)
  std::string task;                 // of points, "" where any
  double bits = 16.0;
  bool by_law = false;              // of weights in groups of 128: as the law says below flat_from parameters
  GapRange gap;                     // of by_law choices, from flat_from on
  std::string flag, source;
};

const std::vector<PostTraining>& post_training_choices();

// Throws InputError for a name that is none of them, with the nearest.
const PostTraining& post_training(const std::string& name);

// The gap at N parameters and D tokens, which only the choices by law need: below 13e9 parameters 0.55 (0.35 to 1) times Kumar et
// al. 2024 without the offset b, from there on flat. Nothing where such a choice lacks N, or D below 13e9.
std::optional<GapRange> post_training_gap(const PostTraining& choice, std::optional<double> N, std::optional<double> D);

// The constants of the law that such a gap is by; "" where it is flat or none.
std::string post_training_law(const PostTraining& choice, std::optional<double> N);

// All choices with their gaps, as text; those by law at N and D where given.
std::string post_training_text(std::optional<double> N, std::optional<double> D);

}  // namespace fitting
