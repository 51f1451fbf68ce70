#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fitting {

// What shares a scale.
enum class Sharing : std::uint8_t { unstated, block, channel, tensor };

// The number format of a tensor, as a recipe's text names it.
struct TensorFormat {
  std::string element;               // fp16 (any 16 or 32 bits), fp8, fp6, fp4, nf4, int, ternary, or a name nobody here knows
  double bits = 0.0;
  Sharing sharing = Sharing::unstated;
  double rows = 1.0, columns = 1.0;  // of a block; columns along the sum
  std::string block_scale;           // nv (E4M3 over blocks of 16) or mx (a power of two over 32), "" where it does not say
  bool is_high() const { return bits >= 16.0; }
};

// A recipe in the words of its paper, such as
//   w=e2m1/16x16 e4m3+fp32;a,g=e2m1/1x16 e4m3+fp32;SR on grads;high=attention,embed,head
// w weights, a activations, g gradients, kv cache, base a frozen base; the rest is read for the names of methods.
struct RecipeText {
  std::optional<TensorFormat> weights, activations, gradients, kv, base;
  std::optional<TensorFormat> whole;   // the first format that the text names outside of the above
  bool quartet = false, quartet2 = false, four_over_six = false, tetrajet = false, early_4bit = false;
  bool forward_only = false, backward_only = false;   // the other pass in 16 bits
  bool low_moments = false;                           // Adam's moments in 8 bits
  bool all_linears = false;
  std::optional<double> late_percent;                 // of tokens, at the end, in 16 bits
  bool late_forward_only = false;
  std::string text;                                   // in lower case, for what a choice after training looks at

  // What the text says of each, else of the whole; both are there where either is.
  std::optional<TensorFormat> of_weights() const;
  std::optional<TensorFormat> of_activations() const;
  // The format of weights and activations in the forward pass: the coarser of both where they differ.
  std::optional<TensorFormat> forward() const;
};

RecipeText read_recipe(std::string_view text);

// The first format that a text names.
std::optional<TensorFormat> format_in(std::string_view text);

}  // namespace fitting
