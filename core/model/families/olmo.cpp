#include "core/model/decoder.h"

namespace core::families {
namespace {

// OLMo 1: as Llama, with LayerNorm that has no parameters.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.norm = {.rms = false, .weight = false, .bias = false};
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily olmo;
const ModelFamily olmo = {
    .name = "olmo",
    .architectures =
        [] {
          return std::vector<std::string_view>{"OlmoForCausalLM", "OLMoForCausalLM"};
        },
    .model_types = [] { return std::vector<std::string_view>{"olmo"}; },
    .read = read,
};

}  // namespace core::families
