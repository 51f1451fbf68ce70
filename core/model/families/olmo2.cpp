#include "core/model/decoder.h"

namespace core::families {
namespace {

// OLMo 2: RMSNorm on the outputs of attention and MLP, and over all queries and all keys.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.norms = Decoder::NormPlacement::after;
  d.qk_norm = Decoder::QkNorm::full_width;
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily olmo2;
const ModelFamily olmo2 = {
    .name = "olmo2",
    .architectures = [] { return std::vector<std::string_view>{"Olmo2ForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"olmo2"}; },
    .read = read,
};

}  // namespace core::families
