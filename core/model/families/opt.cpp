#include "core/model/decoder.h"

namespace core::families {
namespace {

// OPT's position table keeps two rows for padding.
constexpr std::int64_t extra_positions = 2;

void read_norms(ConfigReader& in, Decoder& d) {
  const bool before = in.flag({"do_layer_norm_before"}, true);
  const bool affine = in.flag({"layer_norm_elementwise_affine"}, true);
  d.norm = {.rms = false, .weight = affine, .bias = affine};
  d.norms = before ? Decoder::NormPlacement::before : Decoder::NormPlacement::after;
  d.final_norm = !in.flag({"_remove_final_layer_norm"}, false) && before;
}

// OPT: LayerNorm (after the blocks in the 350M model), biases, learned positions, ReLU.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = d.kv_heads = in.size({"num_attention_heads"}, Largest::heads);
  d.head_dim = read_head_dim(in, {"hidden_size"}, d.hidden, {"num_attention_heads"}, d.heads);
  d.ffn = in.size({"ffn_dim"}, Largest::ffn);
  d.max_positions = in.size({"max_position_embeddings"}, Largest::positions);
  d.learned_positions = d.max_positions + extra_positions;
  d.table_dim = in.size_or({"word_embed_proj_dim"}, d.hidden, Largest::hidden);
  read_norms(in, d);
  d.rope = false;
  d.qkv_bias = d.out_bias = d.up_bias = d.down_bias = in.flag({"enable_bias"}, true);
  d.gated = false;
  d.activation = in.activation({"activation_function"}, Activation::relu);
  d.tied = in.flag({"tie_word_embeddings"}, true);
  d.hidden_dropout = in.rate_or_assume({"dropout"}, 0.1);
  d.attention_dropout = in.rate({"attention_dropout"});
  in.ignore({"output_projection"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily opt;
const ModelFamily opt = {
    .name = "opt",
    .architectures = [] { return std::vector<std::string_view>{"OPTForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"opt"}; },
    .read = read,
};

}  // namespace core::families
