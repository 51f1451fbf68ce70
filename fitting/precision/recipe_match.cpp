#include "fitting/precision/recipe_match.h"

#include <fmt/format.h>

#include "fitting/precision/post_training.h"
#include "fitting/precision/recipe_words.h"

namespace fitting {
namespace {

using By = RecipeMatch::By;

RecipeMatch nothing(std::string why) {
  RecipeMatch out;
  out.why_not = std::move(why);
  return out;
}

RecipeMatch by_effect(const std::string& name, std::string note = "") {
  RecipeMatch out;
  out.by = By::effect;
  out.effect = recipe_effect(name);
  out.name = name;
  out.note = std::move(note);
  return out;
}

RecipeMatch by_name(By by, std::string name, std::string note = "") {
  RecipeMatch out;
  out.by = by;
  out.name = std::move(name);
  out.note = std::move(note);
  return out;
}

RecipeMatch match_fp8(const RecipeText& recipe, const TensorFormat& format) {
  auto out = [&] {
    switch (format.sharing) {
      case Sharing::channel: return by_effect("fp8-row");
      case Sharing::tensor: return by_effect(Words(recipe.text).has("current") ? "fp8-current" : "fp8");
      case Sharing::unstated: return by_effect("fp8", "scales not stated: taken as one a tensor");
      case Sharing::block: break;
    }
    if (format.block_scale == "mx") return by_effect("mxfp8");
    if (format.columns <= 128.0) return by_effect("fp8-block");
    return by_effect("fp8", "blocks wider than 128: taken as one scale a tensor");
  }();
  if (!recipe.low_moments) return out;
  out.effect = combined(out.effect, recipe_effect("bf16-adam8bit"));
  out.name = out.effect.name;
  return out;
}

RecipeMatch match_late_switch(const RecipeText& recipe) {
  if (*recipe.late_percent < 10.0 || *recipe.late_percent > 30.0) {
    return nothing(fmt::format("the last {:g} % in 16 bits: measured is the last 18 %", *recipe.late_percent));
  }
  return by_effect(recipe.late_forward_only ? "nvfp4-late16-forward" : "nvfp4-late16");
}

RecipeMatch match_nvfp4(const RecipeText& recipe) {
  if (recipe.late_percent) return match_late_switch(recipe);
  if (recipe.forward_only) return nothing("NVFP4 in the forward pass alone: no source measured it");
  if (recipe.quartet2) return by_effect("nvfp4-quartet2");
  if (recipe.tetrajet) return by_effect("nvfp4-tetrajet-v2");
  if (recipe.four_over_six) return by_effect("nvfp4-four-over-six");
  const bool told = Words(recipe.text).has_any({"nvidia", "nvidia recipe", "sr", "stochastic", "stochastic rounding", "rht16"});
  return by_effect("nvfp4", told ? "" : "taken as NVIDIA's recipe for NVFP4");
}

RecipeMatch match_mxfp4(const RecipeText& recipe) {
  if (recipe.late_percent) return nothing("MXFP4 with a late switch to 16 bits: measured for NVFP4 alone");
  if (recipe.quartet) return by_effect(recipe.forward_only ? "mxfp4-quartet-forward" : "mxfp4-quartet");
  if (recipe.forward_only) return nothing("MXFP4 in the forward pass alone, by another method than Quartet's: no source measured it");
  const bool told = Words(recipe.text).has_any({"nvidia", "sr", "stochastic", "rht32"}) && !recipe.tetrajet;
  return by_effect("mxfp4", told ? "" : "taken as NVIDIA's recipe for MXFP4");
}

RecipeMatch match_fp4(const RecipeText& recipe, const TensorFormat& format) {
  if (format.block_scale == "nv") return match_nvfp4(recipe);
  if (format.block_scale == "mx") return match_mxfp4(recipe);
  if (format.sharing == Sharing::channel && !recipe.forward_only) return by_effect("fp4-wang2025");
  return nothing("4-bit floating point with scales that no source measured (known: blocks of 16 and 32, and one a channel or token)");
}

RecipeMatch match_integer(const RecipeText& recipe, const TensorFormat& format) {
  if (format.bits == 8.0) return by_effect("int8");
  if (format.sharing == Sharing::tensor || format.sharing == Sharing::channel) {
    return by_name(By::kumar, "kumar-published", recipe.forward_only ? "" : "a law of the forward pass");
  }
  return nothing(fmt::format("integers of {:g} bits: known with one scale a tensor or channel (Kumar et al.)", format.bits));
}

RecipeMatch match_qat(const RecipeText& recipe) {
  const auto low = [](const std::optional<TensorFormat>& f) { return f && f->bits == 4.0 && (f->element == "int" || f->element == "fp4"); };
  const auto forward = recipe.forward();
  if (!forward) return nothing("names no number format that is known");
  if ((recipe.weights && recipe.weights->element == "ternary") || forward->element == "ternary") return by_effect("ternary");
  const auto w = recipe.of_weights(), a = recipe.of_activations();
  const Words words(recipe.text);
  const bool w4a16 = words.has("w4a16") || (low(w) && a->is_high()), w16a4 = words.has("w16a4") || (low(a) && w->is_high());
  if (w4a16) return by_name(By::chen, "chen-w4a16");
  if (w16a4) return by_name(By::chen, "chen-w16a4");
  if (low(w) && low(a)) return by_name(By::chen, "chen-w4a4");
  return nothing("quantisation-aware training is known for weights and activations of 4 bits, and for ternary weights");
}

RecipeMatch match_cache(const RecipeText& recipe, const TensorFormat& format) {
  const Words words(recipe.text);
  if (format.bits == 8.0) return by_name(By::post_training, "kv-8bit");
  if (format.bits == 4.0) return by_name(By::post_training, "kv-4bit");
  if (format.bits == 2.0 && words.has_any({"last", "window", "residual"})) return by_name(By::post_training, "kv-2bit");
  return nothing(fmt::format("a cache of {:g} bits: known are 8, 4, and 2 with a window of 16 bits", format.bits));
}

// "4-bit Q, 3-bit KV": the bits right before KV.
std::optional<TensorFormat> format_before_kv(const Words& words) {
  const auto at = words.has("kv") ? words.find("kv") : words.find("qkv");
  if (!at || *at < 2 || words[*at - 1] != "bit") return std::nullopt;
  const auto bits = words.number(*at - 2);
  return bits ? std::optional(TensorFormat{"int", *bits, {}, 1.0, 1.0, ""}) : std::nullopt;
}

RecipeMatch match_ptq(const RecipeText& recipe) {
  const Words words(recipe.text);
  if (recipe.kv) return match_cache(recipe, *recipe.kv);
  const auto format = recipe.weights ? recipe.weights : recipe.whole;
  if (!format) return nothing("names no number format that is known");
  if (words.has_any({"kv", "qkv"})) return match_cache(recipe, format_before_kv(words).value_or(*format));
  const bool both = words.has_any({"weight act", "weights act", "w4a4", "w8a8", "weights and activations"}) || (recipe.activations && !recipe.activations->is_high());
  if (both && format->element == "fp8" && format->block_scale == "mx") return by_name(By::post_training, "cast-mxfp8");
  if (both && words.has("e3m2")) return by_name(By::post_training, "cast-mxfp6");
  if (both && format->block_scale == "nv") {
    return by_name(By::post_training, words.has_any({"qad", "distillation", "distilled"}) ? "nvfp4-reasoning-distilled" : "nvfp4-reasoning");
  }
  if (both) return nothing("weights and activations cast after training: known for MXFP8, MXFP6 (E3M2) and NVFP4");
  if (format->element == "int" && format->sharing == Sharing::block && format->columns <= 128.0) {
    if (format->bits == 4.0) return by_name(By::post_training, "weights-int4");
    if (format->bits == 3.0) return by_name(By::post_training, "weights-int3");
  }
  return nothing("weights after training: known are integers of 4 and 3 bits in groups of at most 128");
}

RecipeMatch match_base(const GapRow& row, const RecipeText& recipe) {
  const Words words(recipe.text);
  const bool names_base = recipe.whole && recipe.whole->bits < 16.0 && words.has_any({"qlora", "lora"});
  if (!recipe.base && !names_base) {
    if (words.has("lora rank 64") && words.has("16 bit base")) return by_name(By::post_training, "lora-rank64");
    return nothing("fine-tuning is known for LoRA on a base of few bits, and rank 64 against full fine-tuning");
  }
  const auto& base = recipe.base ? *recipe.base : *recipe.whole;
  if (base.element == "nf4") return by_name(By::post_training, "lora-nf4");
  if (base.element == "fp4") return by_name(By::post_training, "lora-fp4");
  if (base.bits == 4.0 && words.has_any({"zero init", "qlora"})) return by_name(By::post_training, "lora-4bit-zero");
  if (base.bits == 4.0 && words.has("loftq")) return by_name(By::post_training, "lora-4bit-loftq");
  if (base.bits == 3.0 && row.N) return by_name(By::post_training, *row.N < 13e9 ? "lora-3bit-7b" : "lora-3bit-13b");
  if (base.bits == 2.25) return by_name(By::post_training, "lora-2.25bit");
  if (base.bits == 2.0) return by_name(By::post_training, "lora-2bit");
  return nothing(fmt::format("a base of {:g} bits: known are NF4, FP4, 4 bits by QLoRA or LoftQ, 3, 2.25 and 2", base.bits));
}

}  // namespace

namespace {

RecipeMatch match_forward(const RecipeText& recipe, const TensorFormat& format) {
  if (format.is_high()) return by_effect(recipe.low_moments ? "bf16-adam8bit" : "bf16");
  if (format.element == "fp8") return match_fp8(recipe, format);
  if (format.element == "fp4") return match_fp4(recipe, format);
  if (format.element == "int") return match_integer(recipe, format);
  return nothing(fmt::format("{}: no source measured training in it", format.element));
}

}  // namespace

RecipeMatch match_training(const RecipeText& recipe) {
  if (recipe.early_4bit) return by_effect("early-4bit");
  if (recipe.backward_only) {
    const auto& g = recipe.gradients ? recipe.gradients : recipe.whole;
    if (g && g->block_scale == "mx" && g->bits == 4.0) return by_effect("mxfp4-backward");
    return nothing("few bits in the backward pass alone: known for MXFP4");
  }
  const auto format = recipe.forward();
  if (!format) return nothing("names no number format that is known");
  if (format->element == "ternary") return by_effect("ternary");
  if (format->element != "int" && recipe.of_weights()->is_high() != recipe.of_activations()->is_high()) {
    return nothing("few bits in weights or activations alone: known for both, for integers and for ternary weights");
  }
  auto out = match_forward(recipe, *format);
  const bool mixed = recipe.of_weights()->bits != recipe.of_activations()->bits;
  if (mixed && out.by != By::nothing && out.by != By::kumar) {
    out.note += std::string(out.note.empty() ? "" : "; ") + "weights and activations differ: taken as the coarser of the two";
  }
  return out;
}

RecipeMatch match_recipe(const GapRow& row, const RecipeText& recipe) {
  if (row.method == "training") return match_training(recipe);
  if (row.method == "finetune") return match_base(row, recipe);
  if (row.method == "PTQ") return match_ptq(recipe);
  if (row.method == "QAT") {
    const Words words(recipe.text);
    if (recipe.kv || words.has_any({"kv", "qkv"}) || words.has_any({"qad"})) return match_ptq(recipe);
    return match_qat(recipe);
  }
  return nothing(fmt::format("method {}: known are training, QAT, PTQ and finetune", row.method));
}

// Which scales a baseline in FP8 has is seldom said: the finest are taken, which cost least.
RecipeEffect baseline_effect(const std::string& baseline) {
  const Words words(baseline);
  const bool high = words.has_any({"bf16", "fp16", "fp32", "16 bit", "lora"});
  if (high || !words.has_any({"fp8", "float8"})) return recipe_effect("bf16");
  return recipe_effect("fp8-block");
}

}  // namespace fitting
