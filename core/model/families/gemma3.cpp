#include "core/model/decoder.h"

namespace core::families {
namespace {

// Sizes that the text part of a published vision configuration leaves out, as Gemma3TextConfig has
// them.
constexpr ClassDefaults text_defaults = {
    .vocab = 262208, .heads = 8, .kv_heads = 4, .head_dim = 256};
constexpr std::int64_t default_pattern = 6;

Decoder read_decoder(ConfigReader& in, const ClassDefaults& defaults) {
  Decoder d = read_shared_keys(in, defaults);
  d.norms = Decoder::NormPlacement::around;
  d.qk_norm = Decoder::QkNorm::per_head;
  d.activation = in.activation({"hidden_activation", "hidden_act"}, Activation::gelu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, true);
  const std::int64_t window = in.size({"sliding_window"}, Largest::positions);
  const std::int64_t pattern = in.size_or(
      {"sliding_window_pattern", "_sliding_window_pattern"}, default_pattern, Largest::layers);
  d.windows =
      read_windows(in, d.layers, window, [=](std::int64_t i) { return (i + 1) % pattern != 0; });
  return d;
}

// Gemma 3, text: as Gemma 2, with RMSNorm on each head's queries and keys; each sixth layer sees
// all.
ModelSpec read(const Document& config) {
  const Document* text = config.find("text_config");
  if (text == nullptr) {
    ConfigReader in(config);
    return decoder_spec(read_decoder(in, {.kv_heads = 4, .head_dim = 256}), in);
  }
  ConfigReader in(*text);
  in.warn("text_config: read alone; the vision tower is left out");
  return decoder_spec(read_decoder(in, text_defaults), in);
}

}  // namespace

extern const ModelFamily gemma3;
const ModelFamily gemma3 = {
    .name = "gemma3",
    .architectures =
        [] {
          return std::vector<std::string_view>{"Gemma3ForCausalLM",
                                               "Gemma3ForConditionalGeneration"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"gemma3_text", "gemma3"};
        },
    .read = read,
};

}  // namespace core::families
