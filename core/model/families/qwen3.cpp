#include "core/model/decoder.h"

namespace core::families {
namespace {

// Qwen 3, dense: as Llama, with RMSNorm on each head's queries and keys.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 32, .head_dim = 128});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.qk_norm = Decoder::QkNorm::per_head;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.windows = read_max_window_layers(in, d.layers);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily qwen3;
const ModelFamily qwen3 = {
    .name = "qwen3",
    .architectures = [] { return std::vector<std::string_view>{"Qwen3ForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"qwen3"}; },
    .read = read,
};

}  // namespace core::families
