#include "core/model/decoder.h"

namespace core::families {
namespace {

// Phi-1 and 2: attention and MLP side by side after one LayerNorm, biases everywhere, the output
// layer too.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.norms = Decoder::NormPlacement::shared;
  d.parallel_residual = true;
  d.qkv_bias = d.out_bias = d.up_bias = d.down_bias = true;
  if (in.flag({"qk_layernorm"}, false)) {
    d.qk_norm = Decoder::QkNorm::per_head;
    d.qk_norm_bias = true;
  }
  d.gated = false;
  d.activation = in.activation({"hidden_act"}, Activation::gelu);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.output_bias = true;
  read_dropouts(in, d, {"resid_pdrop"}, {"embd_pdrop"}, {"attention_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily phi;
const ModelFamily phi = {
    .name = "phi",
    .architectures = [] { return std::vector<std::string_view>{"PhiForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"phi"}; },
    .read = read,
};

}  // namespace core::families
