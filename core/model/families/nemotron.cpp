#include "core/model/decoder.h"

namespace core::families {
namespace {

// Nemotron-4 and Minitron: LayerNorm around 1 (LayerNorm1P), an MLP with squared ReLU and no gate.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.gated = false;
  d.activation = in.activation({"hidden_act"}, Activation::squared_relu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.up_bias = d.down_bias = in.flag({"mlp_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.hidden_dropout = in.rate({"hidden_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily nemotron;
const ModelFamily nemotron = {
    .name = "nemotron",
    .architectures = [] { return std::vector<std::string_view>{"NemotronForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"nemotron"}; },
    .read = read,
};

}  // namespace core::families
