#include "fitting/precision/gap_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "fitting/precision/post_training.h"
#include "fitting/precision/recipe_match.h"

namespace fitting {
namespace {

// Which task's points a row has, as far as its texts say.
bool is_of_task(const GapRow& row, const std::string& task) {
  std::string text = row.id + " " + row.where + " " + row.notes + " " + row.source;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find(task) != std::string::npos;
}

PredictedGap of_law(LawGap gap) {
  PredictedGap out;
  out.base = std::move(gap.base);
  out.nats = gap.nats;
  out.percent = gap.percent;
  return out;
}

std::variant<PredictedGap, std::string> by_post_training(const GapRow& row, const std::string& name) {
  const auto& choice = post_training(name);
  const auto gap = post_training_gap(choice, row.N, row.D);
  if (!gap) return std::string(row.N ? "tokens not stated" : "parameters not stated");
  PredictedGap out;
  out.flag = choice.flag;
  if (choice.unit == "nats") {
    out.nats = gap;
    out.base = post_training_law(choice, row.N);
    return out;
  }
  if (row.metric != "acc") return fmt::format("{} is known in points of a task, the row's metric is {}", name, row.metric);
  if (!choice.task.empty() && !is_of_task(row, choice.task)) return fmt::format("{} is known in points of {}, which the row does not name", name, choice.task);
  out.points = gap;
  return out;
}

std::variant<PredictedGap, std::string> by_effect(const GapRow& row, const RecipeEffect& effect) {
  PredictedGap out;
  if (effect.gap_percent) {
    out.percent = effect.gap_percent;
  } else {
    if (!row.N) return std::string("parameters not stated");
    if (!row.D) return std::string("tokens not stated");
    out = of_law(gap_by_factors(base_law_at(*row.N), *row.N, *row.D, effect, baseline_effect(row.baseline)));
  }
  out.flag = effect.flag;
  return out;
}

std::variant<PredictedGap, std::string> by_law_of_bits(const GapRow& row, const RecipeText& recipe, const RecipeMatch& match) {
  if (!row.N) return std::string("parameters not stated");
  if (!row.D) return std::string("tokens not stated");
  if (match.by == RecipeMatch::By::kumar) {
    auto gap = gap_by_kumar(*row.N, *row.D, recipe.of_weights()->bits, recipe.of_activations()->bits);
    if (!gap) return std::string("the law of Kumar et al. has no value at so few bits");
    return of_law(std::move(*gap));
  }
  const auto group = group_of(*recipe.forward(), *row.N);
  if (!group) return std::string("how many values share a scale is not stated");
  return of_law(gap_by_chen(match.name, *row.N, *row.D, *group));
}

std::variant<PredictedGap, std::string> by_match(const GapRow& row, const RecipeText& recipe, const RecipeMatch& match) {
  using By = RecipeMatch::By;
  if (match.by == By::nothing) return match.why_not;
  if (match.by == By::post_training) return by_post_training(row, match.name);
  if (match.by == By::effect) return by_effect(row, match.effect);
  return by_law_of_bits(row, recipe, match);
}

std::string group_of_row(const GapRow& row, const RecipeText& recipe, const RecipeMatch& match) {
  if (match.by == RecipeMatch::By::post_training) {
    const auto& tensor = post_training(match.name).tensor;
    if (tensor == "kv") return "cache of keys and values";
    if (tensor == "base" || tensor == "adapter") return "LoRA";
    return tensor == "weights" ? "weights after training" : "weights and activations after training";
  }
  if (match.name == "early-4bit") return "4-bit methods of 2021 to 2024";
  if (match.name == "ternary") return "ternary weights";
  if (row.method == "QAT") return "quantisation-aware training";
  if (recipe.backward_only) return "4-bit gradients alone";
  const auto forward = recipe.forward();
  if (forward && forward->bits > 4.0) return forward->is_high() ? "16-bit training" : "8-bit training";
  return row.N && *row.N >= 4e8 ? "4-bit training from 4e8 parameters" : "4-bit training below 4e8 parameters";
}

// Of weights and activations; a channel counts as a block of 128.
std::optional<Floor> floor_of_training(const GapRow& row, const RecipeText& recipe) {
  const auto forward = recipe.forward();
  if (row.method != "training" || !forward || forward->sharing == Sharing::unstated || recipe.backward_only) return std::nullopt;
  const double block = forward->sharing == Sharing::tensor ? whole_tensor : forward->sharing == Sharing::channel ? 128.0 : forward->columns;
  auto floor = floor_of("linear", forward->bits, block);
  if (forward->bits <= 4.0 && recipe.all_linears && row.N && *row.N > 1e9 && floor.grade == Grade::flag) {
    return Floor{Grade::refuse, "refused: 4 bits on every linear layer above 1e9 parameters"};
  }
  return floor;
}

}  // namespace

std::variant<PredictedGap, std::string> predict_gap(const GapRow& row) {
  const auto recipe = read_recipe(row.recipe);
  const auto match = match_recipe(row, recipe);
  auto predicted = by_match(row, recipe, match);
  if (auto* gap = std::get_if<PredictedGap>(&predicted)) {
    gap->by = match.name;
    gap->note = match.note;
    gap->group = group_of_row(row, recipe, match);
    gap->floor = floor_of_training(row, recipe);
    if (row.method == "training" && row.N && row.D) gap->laws = laws_side_by_side(*row.N, *row.D, recipe);
  }
  return predicted;
}

}  // namespace fitting
