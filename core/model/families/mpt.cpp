#include "core/model/decoder.h"

namespace core::families {
namespace {

std::int64_t read_kv_heads(ConfigReader& in, std::int64_t heads) {
  const std::string type = in.text_or({"attn_config.attn_type"}, "multihead_attention");
  if (type == "multihead_attention") {
    return heads;
  }
  if (type == "multiquery_attention") {
    return 1;
  }
  if (type != "grouped_query_attention") {
    in.find({"attn_config.attn_type"})
        ->complain("multihead_attention, multiquery_attention or grouped_query_attention");
  }
  const std::int64_t kv_heads = in.size({"attn_config.kv_n_heads"}, Largest::heads);
  in.require_multiple({"n_heads"}, heads, {"attn_config.kv_n_heads"}, kv_heads);
  return kv_heads;
}

void read_norms(ConfigReader& in, Decoder& d, bool bias) {
  const std::string type = in.text_or({"norm_type"}, "low_precision_layernorm");
  d.norm = {.rms = type.find("rms") != std::string::npos, .weight = true, .bias = bias};
  if (d.norm.rms) {
    d.norm.bias = false;
  }
  if (in.flag({"attn_config.qk_ln"}, false)) {
    d.qk_norm = Decoder::QkNorm::full_width;
    d.qk_norm_bias = d.norm.bias;
  }
}

void read_positions(ConfigReader& in, Decoder& d) {
  d.max_positions = in.size({"max_seq_len"}, Largest::positions);
  d.alibi = in.flag({"attn_config.alibi", "alibi"}, false);
  d.rope = in.flag({"attn_config.rope"}, false);
  const bool learned = in.flag({"learned_pos_emb"}, true);
  d.learned_positions = learned && !d.alibi && !d.rope ? d.max_positions : 0;
}

// MPT: LayerNorm, no biases, ALiBi, tied embeddings.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  if (!in.has({"attn_config", "alibi"})) {
    in.missing("attn_config");
  }
  Decoder d;
  d.hidden = in.size({"d_model"}, Largest::hidden);
  d.layers = in.size({"n_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = in.size({"n_heads"}, Largest::heads);
  d.head_dim = read_head_dim(in, {"d_model"}, d.hidden, {"n_heads"}, d.heads);
  d.kv_heads = read_kv_heads(in, d.heads);
  d.ffn = d.hidden * in.size({"expansion_ratio", "mlp_ratio"}, Largest::ffn / d.hidden);
  const bool bias = !in.flag({"no_bias"}, true);
  read_norms(in, d, bias);
  read_positions(in, d);
  d.qkv_bias = d.out_bias = d.up_bias = d.down_bias = bias;
  d.gated = false;
  d.activation = Activation::gelu;
  d.tied = in.flag({"tie_word_embeddings"}, true);
  read_dropouts(in, d, {"resid_pdrop"}, {"emb_pdrop"}, {"attn_config.attn_pdrop"});
  in.ignore({"attn_config.prefix_lm", "attn_config.attn_uses_sequence_id"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily mpt;
const ModelFamily mpt = {
    .name = "mpt",
    .architectures =
        [] {
          return std::vector<std::string_view>{"MPTForCausalLM", "MptForCausalLM"};
        },
    .model_types = [] { return std::vector<std::string_view>{"mpt"}; },
    .read = read,
};

}  // namespace core::families
