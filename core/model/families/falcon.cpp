#include "core/model/decoder.h"

namespace core::families {
namespace {

// The first versions call the keys n_head_kv and leave new_decoder_architecture out where it is
// implied.
bool is_new_architecture(ConfigReader& in) {
  return in.flag({"new_decoder_architecture"}, in.has({"n_head_kv"}));
}

std::int64_t read_kv_heads(ConfigReader& in, std::int64_t heads) {
  if (!is_new_architecture(in)) {
    in.ignore({"num_kv_heads"});
    if (!in.has({"multi_query"})) {
      in.missing("multi_query");
    }
    return in.flag({"multi_query"}, true) ? 1 : heads;
  }
  in.ignore({"multi_query"});
  const std::int64_t kv_heads = in.size({"num_kv_heads", "n_head_kv"}, Largest::heads);
  in.require_multiple(
      {"num_attention_heads", "n_head"}, heads, {"num_kv_heads", "n_head_kv"}, kv_heads);
  return kv_heads;
}

void read_norms(ConfigReader& in, Decoder& d) {
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.parallel_residual = in.flag({"parallel_attn"}, true);
  const std::int64_t norms =
      in.size_or({"num_ln_in_parallel_attn"}, is_new_architecture(in) ? 2 : 1, 2);
  d.norms = d.parallel_residual && norms == 1 ? Decoder::NormPlacement::shared
                                              : Decoder::NormPlacement::before;
}

// Falcon: attention and MLP side by side, after one LayerNorm (7B) or one each (40B, 180B).
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers", "n_layer"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = in.size({"num_attention_heads", "n_head"}, Largest::heads);
  d.head_dim =
      read_head_dim(in, {"hidden_size"}, d.hidden, {"num_attention_heads", "n_head"}, d.heads);
  d.kv_heads = read_kv_heads(in, d.heads);
  d.ffn = in.size_or({"ffn_hidden_size"}, 4 * d.hidden, Largest::ffn);
  d.max_positions = in.size_or({"max_position_embeddings"}, 0, Largest::positions);
  read_norms(in, d);
  d.alibi = in.flag({"alibi"}, false);
  d.rope = !d.alibi;
  d.qkv_bias = d.out_bias = d.up_bias = d.down_bias = in.flag({"bias"}, false);
  d.gated = false;
  d.activation =
      in.has({"activation"}) ? in.activation({"activation"}, Activation::gelu) : Activation::gelu;
  d.tied = in.flag({"tie_word_embeddings"}, true);
  read_dropouts(in, d, {"hidden_dropout"}, {"hidden_dropout"}, {"attention_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily falcon;
const ModelFamily falcon = {
    .name = "falcon",
    .architectures =
        [] {
          return std::vector<std::string_view>{"FalconForCausalLM", "RWForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"falcon", "RefinedWeb", "RefinedWebModel"};
        },
    .read = read,
};

}  // namespace core::families
