#include "core/recipe.h"

#include <vector>

#include "core/error.h"
#include "core/graph/op.h"
#include "core/io/data_dir.h"
#include "core/io/document.h"

namespace core {

namespace {

// Bytes a recipe may spend on an element: nothing up to the sixteen of two doubles.
double bytes_at(const Document& states, std::string_view key) {
  const Document& value = states.at(key);
  const double bytes = value.as_real();
  if (bytes < 0.0 || bytes > 16.0) {
    value.complain("bytes of an element, 0 to 16");
  }
  return bytes;
}

std::string format_at(const Document& formats, std::string_view key) {
  const Document& value = formats.at(key);
  try {
    return std::string(name_of(format_of(value.as_text())));
  } catch (const InputError&) {
    value.complain("fp32, tf32, fp16, bf16 or fp8");
  }
}

void read_formats(const Document& formats, Recipe& recipe) {
  recipe.compute_format = format_at(formats, "compute");
  recipe.gemm_forward = format_at(formats, "gemm_forward");
  recipe.gemm_input_gradient = format_at(formats, "gemm_input_gradient");
  recipe.gemm_weight_gradient = format_at(formats, "gemm_weight_gradient");
  recipe.gemm_output = format_at(formats, "gemm_output");
  formats.reject_unknown(
      {"compute", "gemm_forward", "gemm_input_gradient", "gemm_weight_gradient", "gemm_output"});
}

struct StateKey {
  std::string_view key;
  double Recipe::*member;
};

constexpr StateKey state_keys[] = {
    {"weight", &Recipe::weight_bytes},
    {"weight_copy", &Recipe::weight_copy_bytes},
    {"main_weight", &Recipe::main_weight_bytes},
    {"gradient", &Recipe::gradient_bytes},
    {"moment1", &Recipe::moment1_bytes},
    {"moment2", &Recipe::moment2_bytes},
    {"activation", &Recipe::activation_bytes},
    {"gemm_input", &Recipe::gemm_input_bytes},
    {"gradient_reduce", &Recipe::gradient_reduce_bytes},
    {"parameter_gather", &Recipe::parameter_gather_bytes},
    {"cast_per_gemm_element", &Recipe::cast_bytes_per_gemm_element},
};

void read_bytes(const Document& states, Recipe& recipe) {
  std::vector<std::string_view> known;
  for (const StateKey& state : state_keys) {
    recipe.*state.member = bytes_at(states, state.key);
    known.push_back(state.key);
  }
  states.reject_unknown(known);
}

}  // namespace

Recipe load_recipe(std::string_view name) {
  return read_recipe(Document::read_json_file(data_file("recipes", name, "--recipe")), name);
}

Recipe read_recipe(const Document& file, std::string_view name) {
  Recipe recipe;
  recipe.name = std::string(name);
  file.at("title").as_text();
  read_formats(file.at("formats"), recipe);
  read_bytes(file.at("bytes"), recipe);
  for (const auto& [key, source] : file.at("sources").as_object()) {
    recipe.sources.emplace_back(key, source.as_text());
  }
  file.reject_unknown({"title", "formats", "bytes", "sources"});
  return recipe;
}

}  // namespace core
