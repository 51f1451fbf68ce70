#include "core/model/decoder.h"

namespace core::families {
namespace {

// Llama 1 to 3 and what is built like them (TinyLlama, SmolLM, Yi): RMSNorm, gated MLP, grouped
// queries.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.up_bias = d.down_bias = in.flag({"mlp_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily llama;
const ModelFamily llama = {
    .name = "llama",
    .architectures =
        [] {
          return std::vector<std::string_view>{"LlamaForCausalLM", "LLaMAForCausalLM"};
        },
    .model_types = [] { return std::vector<std::string_view>{"llama"}; },
    .read = read,
};

}  // namespace core::families
