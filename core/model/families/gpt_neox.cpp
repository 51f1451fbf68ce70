#include "core/model/decoder.h"

namespace core::families {
namespace {

// GPT-NeoX and Pythia: attention and MLP side by side, each with its LayerNorm, rotary positions.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = d.kv_heads = in.size({"num_attention_heads"}, Largest::heads);
  d.head_dim = read_head_dim(in, {"hidden_size"}, d.hidden, {"num_attention_heads"}, d.heads);
  d.ffn = in.size({"intermediate_size"}, Largest::ffn);
  d.max_positions = in.size_or({"max_position_embeddings"}, 0, Largest::positions);
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.parallel_residual = in.flag({"use_parallel_residual"}, true);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, true);
  d.gated = false;
  d.activation = in.activation({"hidden_act"}, Activation::gelu);
  d.up_bias = d.down_bias = true;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  read_dropouts(in, d, {"hidden_dropout"}, {"hidden_dropout"}, {"attention_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily gpt_neox;
const ModelFamily gpt_neox = {
    .name = "gpt_neox",
    .architectures = [] { return std::vector<std::string_view>{"GPTNeoXForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"gpt_neox"}; },
    .read = read,
};

}  // namespace core::families
