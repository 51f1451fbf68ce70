#include "core/model/decoder.h"

namespace core::families {
namespace {

// StarCoder 2: LayerNorm, biases, grouped queries, a plain MLP with GELU, a window, tied
// embeddings.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 2});
  const bool bias = in.flag({"use_bias"}, true);
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.qkv_bias = d.out_bias = d.up_bias = d.down_bias = bias;
  d.gated = false;
  d.activation = in.activation({"hidden_act"}, Activation::gelu);
  in.ignore({"activation_function", "mlp_type", "norm_type"});
  d.tied = in.flag({"tie_word_embeddings"}, true);
  const std::int64_t window = in.size_or({"sliding_window"}, 0, Largest::positions);
  d.windows = read_windows(in, d.layers, window, [](std::int64_t) { return true; });
  read_dropouts(in, d, {"residual_dropout"}, {"embedding_dropout"}, {"attention_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily starcoder2;
const ModelFamily starcoder2 = {
    .name = "starcoder2",
    .architectures = [] { return std::vector<std::string_view>{"Starcoder2ForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"starcoder2"}; },
    .read = read,
};

}  // namespace core::families
