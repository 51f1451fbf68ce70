#include "core/model/decoder.h"

namespace core::families {
namespace {

// Gemma 2: norms before and after attention and MLP; every other layer sees a window, the first one
// too.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 4, .head_dim = 256});
  d.norms = Decoder::NormPlacement::around;
  d.activation = in.activation({"hidden_activation", "hidden_act"}, Activation::gelu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, true);
  const std::int64_t window = in.size({"sliding_window"}, Largest::positions);
  d.windows = read_windows(in, d.layers, window, [](std::int64_t i) { return i % 2 == 0; });
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily gemma2;
const ModelFamily gemma2 = {
    .name = "gemma2",
    .architectures = [] { return std::vector<std::string_view>{"Gemma2ForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"gemma2"}; },
    .read = read,
};

}  // namespace core::families
