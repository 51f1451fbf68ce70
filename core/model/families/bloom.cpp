#include "core/model/decoder.h"

namespace core::families {
namespace {

// BLOOM: LayerNorm (one on the embedding too), biases everywhere, ALiBi, an MLP of 4 x hidden.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size", "n_embed"}, Largest::hidden);
  d.layers = in.size({"n_layer", "num_hidden_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = d.kv_heads = in.size({"n_head", "num_attention_heads"}, Largest::heads);
  d.head_dim = read_head_dim(
      in, {"hidden_size", "n_embed"}, d.hidden, {"n_head", "num_attention_heads"}, d.heads);
  d.ffn = in.size_or({"n_inner"}, 4 * d.hidden, Largest::ffn);
  d.max_positions = in.size_or({"seq_length"}, 0, Largest::positions);
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.rope = false;
  d.alibi = true;
  d.qkv_bias = d.out_bias = d.up_bias = d.down_bias = true;
  d.gated = false;
  d.activation = Activation::gelu;
  d.embedding_norm = true;
  d.tied = in.flag({"tie_word_embeddings"}, true);
  read_dropouts(in, d, {"hidden_dropout"}, {"hidden_dropout"}, {"attention_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily bloom;
const ModelFamily bloom = {
    .name = "bloom",
    .architectures = [] { return std::vector<std::string_view>{"BloomForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"bloom"}; },
    .read = read,
};

}  // namespace core::families
