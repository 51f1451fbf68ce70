#include "fitting/precision/recipe_text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "fitting/precision/recipe_words.h"

namespace fitting {
namespace {

struct Known {
  std::string_view word, element;
  double bits;
  double block;                  // 0 where the word says none
  std::string_view block_scale;
};

constexpr std::array<Known, 30> known_formats = {{
    {"nvfp4", "fp4", 4, 16, "nv"}, {"mxfp4", "fp4", 4, 32, "mx"}, {"mxfp6", "fp6", 6, 32, "mx"}, {"mxfp8", "fp8", 8, 32, "mx"},
    {"e2m1", "fp4", 4, 0, ""}, {"fp4", "fp4", 4, 0, ""}, {"float4", "fp4", 4, 0, ""}, {"e3m2", "fp6", 6, 0, ""}, {"e2m3", "fp6", 6, 0, ""},
    {"fp6", "fp6", 6, 0, ""}, {"e4m3", "fp8", 8, 0, ""}, {"e5m2", "fp8", 8, 0, ""}, {"fp8", "fp8", 8, 0, ""}, {"float8", "fp8", 8, 0, ""},
    {"int8", "int", 8, 0, ""}, {"int6", "int", 6, 0, ""}, {"int5", "int", 5, 0, ""}, {"int4", "int", 4, 0, ""}, {"int3", "int", 3, 0, ""},
    {"int2", "int", 2, 0, ""}, {"nf4", "nf4", 4, 0, ""}, {"ternary", "ternary", 1.58, 0, ""}, {"hifloat4", "hifloat4", 4, 0, ""},
    {"hif4", "hifloat4", 4, 0, ""}, {"bf16", "fp16", 16, 0, ""}, {"fp16", "fp16", 16, 0, ""}, {"float16", "fp16", 16, 0, ""},
    {"bfloat16", "fp16", 16, 0, ""}, {"fp32", "fp16", 32, 0, ""}, {"float32", "fp16", 32, 0, ""}}};

// "4 bit", "2.25 bit", "16 bits" at word i.
std::optional<double> bits_at(const Words& words, std::size_t i) {
  const auto number = words.number(i);
  if (!number || i + 1 >= words.size() || (words[i + 1] != "bit" && words[i + 1] != "bits")) return std::nullopt;
  return number;
}

// "w4a4" as its 4.
std::optional<double> bits_of_w_a(const std::string& word) {
  if (word.size() < 4 || word[0] != 'w' || word.find('a') == std::string::npos) return std::nullopt;
  const auto a = word.find('a');
  const auto digits = [](std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; }); };
  if (!digits(std::string_view(word).substr(1, a - 1)) || !digits(std::string_view(word).substr(a + 1))) return std::nullopt;
  return std::min(std::stod(word.substr(1, a - 1)), std::stod(word.substr(a + 1)));
}

std::optional<TensorFormat> element_in(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const auto& known : known_formats) {
      if (words[i] != known.word) continue;
      TensorFormat format{std::string(known.element), known.bits, {}, 1.0, 1.0, std::string(known.block_scale)};
      if (known.block > 0.0) {
        format.sharing = Sharing::block;
        format.columns = known.block;
      }
      return format;
    }
    auto bits = bits_at(words, i);
    if (!bits && words[i].size() < 12) bits = bits_of_w_a(words[i]);
    if (bits && *bits > 0.0 && *bits <= 64.0) return TensorFormat{*bits >= 16.0 ? "fp16" : *bits < 2.0 ? "ternary" : "int", *bits, {}, 1.0, 1.0, ""};
  }
  return std::nullopt;
}

// "group 128", "group size 128", "block 64", "g128" at word i.
std::optional<double> group_at(const Words& words, std::size_t i) {
  const auto& word = words[i];
  if (word.size() > 1 && word.front() == 'g') {
    if (const auto n = Words(std::string_view(word).substr(1)).number(0); n && *n >= 1.0) return n;
  }
  if (word != "group" && word != "groups" && word != "block" && word != "blocks") return std::nullopt;
  std::size_t at = i + 1;
  while (at < words.size() && (words[at] == "size" || words[at] == "of")) ++at;
  const auto n = words.number(at);
  return n && *n >= 1.0 && !bits_at(words, at) ? n : std::nullopt;
}

// What the words say of scales, into a format.
void sharing_in(const Words& words, TensorFormat& format) {
  if (words.has_any({"per tensor", "tensorwise", "tensor wise", "te"}) && format.sharing == Sharing::unstated) {
    format.sharing = Sharing::tensor;
    return;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto shape = words.shape(i);
    if (const auto n = group_at(words, i); !shape && n) shape = std::pair{1.0, *n};
    if (!shape) continue;
    format.sharing = Sharing::block;
    format.rows = shape->first;
    format.columns = shape->second;
    return;
  }
  if (format.sharing != Sharing::unstated) return;
  if (words.has_any({"per channel", "per token", "per row", "rowwise", "row wise", "channelwise"})) format.sharing = Sharing::channel;
  else if (words.has_any({"fine grained", "block wise", "blockwise", "microscaling"})) {
    format.sharing = Sharing::block;
    format.columns = 128.0;
  }
}

// Blocks of 16 values of E2M1 are those of NVFP4, blocks of 32 values of any format those of MX, also where the text writes them out.
void name_block_scale(const Words& words, TensorFormat& format) {
  if (!format.block_scale.empty() || format.sharing != Sharing::block || !format.element.starts_with("fp")) return;
  if (format.columns == 16.0 && format.element == "fp4") format.block_scale = "nv";
  if ((format.columns == 32.0 && format.rows == 1.0) || words.has("e8m0")) format.block_scale = "mx";
}

std::vector<std::string> pieces(std::string_view text, char at) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(at, begin), text.size());
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// The tensor that a key means, or null.
std::optional<TensorFormat>* tensor_of(RecipeText& recipe, const std::string& key) {
  const Words words(key);
  if (words.has("backward operands") && words.size() == 2) return &recipe.gradients;
  if (words.size() != 1) return nullptr;
  if (words[0] == "w") return &recipe.weights;
  if (words[0] == "a") return &recipe.activations;
  if (words[0] == "g") return &recipe.gradients;
  if (words[0] == "kv") return &recipe.kv;
  return words[0] == "base" ? &recipe.base : nullptr;
}

// Whether a clause says something of the recipe as a whole, and not what one key ("high=...", "opt=...") stands for.
bool is_free(const std::string& clause) {
  const auto equals = clause.find('=');
  return equals == std::string::npos || Words(std::string_view(clause).substr(0, equals)).size() > 4;
}

// "w,a=..." into the tensors that it names.
void read_clause(const std::string& clause, const std::optional<TensorFormat>& whole, const Words& all, RecipeText& recipe) {
  const auto equals = clause.find('=');
  if (equals == std::string::npos) return;
  const auto value = clause.substr(equals + 1);
  auto format = element_in(Words(value));
  if (!format && whole) format = whole;  // "NVFP4 ...: w=16x16"
  for (const auto& key : pieces(clause.substr(0, equals), ',')) {
    auto* tensor = tensor_of(recipe, key);
    if (tensor == nullptr || !format) continue;
    *tensor = *format;
    sharing_in(Words(value), **tensor);
    if ((*tensor)->sharing == Sharing::unstated) {
      if (all.has_any({"per tensor", "tensorwise", "delayed"})) (*tensor)->sharing = Sharing::tensor;
      else if (all.has_any({"rowwise", "per row"})) (*tensor)->sharing = Sharing::channel;
    }
    name_block_scale(Words(value), **tensor);
  }
}

// "adam m,v=e4m3", "FP8 optimizer", "opt=int8 moments": moments of few bits.
bool moments_are_low(const std::string& text) {
  const Words words(text);
  if (words.has_any({"fp8 optimizer", "first moment", "8 bit adam", "8 bit moments", "fp8 moments", "int8 moments"})) return true;
  const auto adam = words.find("adam");
  for (std::size_t i = adam.value_or(words.size()); i < words.size() && i < *adam + 4; ++i) {
    if (words[i] == "e4m3" || words[i] == "e5m2" || words[i] == "fp8" || words[i] == "int8") return true;
  }
  return false;
}

void read_late_switch(const std::string& text, RecipeText& recipe) {
  const auto at = text.find("for the last ");
  if (at == std::string::npos) return;
  const Words words(std::string_view(text).substr(at));
  recipe.late_percent = words.number(3);
  recipe.late_forward_only = !Words(text).has_any({"forward and backward", "backward and forward"});
}

void read_methods(const std::string& text, RecipeText& recipe) {
  const Words words(text);
  recipe.quartet2 = words.has_any({"quartet ii", "quartet 2", "ms eden"});
  recipe.quartet = !recipe.quartet2 && words.has_any({"quest", "quartet"});
  recipe.four_over_six = words.has_any({"four over six", "4 6"});
  recipe.tetrajet = words.has_any({"tetrajet", "tetrajet v2"});
  recipe.early_4bit = words.has_any({"luq", "lss", "jetfire", "halo"});
  recipe.all_linears = words.has_any({"all linears", "all linear layers", "every linear layer", "every linear"});
  read_late_switch(text, recipe);
  const bool backward_high = words.has_any({"backward bf16", "bf16 backward", "backward 16 bit", "backward in 16 bits"});
  recipe.forward_only = !recipe.late_percent && (words.has("forward only") || backward_high || (recipe.gradients && recipe.gradients->is_high()));
  recipe.backward_only = words.has_any({"forward bf16", "forward 16 bit", "backward only", "forward in 16 bits"});
  recipe.low_moments = moments_are_low(text);
}

}  // namespace

std::optional<TensorFormat> format_in(std::string_view text) {
  const Words words(text);
  auto format = element_in(words);
  if (!format) return std::nullopt;
  sharing_in(words, *format);
  name_block_scale(words, *format);
  return format;
}

std::optional<TensorFormat> RecipeText::of_weights() const { return weights ? weights : whole ? whole : activations; }

std::optional<TensorFormat> RecipeText::of_activations() const { return activations ? activations : whole ? whole : weights; }

std::optional<TensorFormat> RecipeText::forward() const {
  const auto w = of_weights(), a = of_activations();
  if (!w) return std::nullopt;
  return a->bits < w->bits ? a : w;
}

RecipeText read_recipe(std::string_view written) {
  std::string text(written);
  for (auto& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  RecipeText recipe;
  recipe.text = text;
  const Words all(text);
  std::string rest;
  std::vector<std::string> clauses;
  for (const auto& clause : pieces(text, ';')) {
    const auto colon = clause.find(": ");
    if (colon == std::string::npos || clause.find('=') < colon) {
      clauses.push_back(clause);
    } else {
      rest += clause.substr(0, colon) + "; ";
      clauses.push_back(clause.substr(colon + 2));
    }
  }
  for (const auto& clause : clauses) {
    if (is_free(clause)) rest += clause + "; ";
  }
  recipe.whole = format_in(rest);
  for (const auto& clause : clauses) read_clause(clause, recipe.whole, all, recipe);
  read_methods(text, recipe);
  return recipe;
}

}  // namespace fitting
