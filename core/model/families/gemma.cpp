#include "core/model/decoder.h"

namespace core::families {
namespace {

// Gemma 1: RMSNorm, MLP gated by GELU, heads wider than hidden / heads, tied embeddings.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 16, .head_dim = 256});
  d.activation = in.activation({"hidden_activation", "hidden_act"}, Activation::gelu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, true);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily gemma;
const ModelFamily gemma = {
    .name = "gemma",
    .architectures = [] { return std::vector<std::string_view>{"GemmaForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"gemma"}; },
    .read = read,
};

}  // namespace core::families
