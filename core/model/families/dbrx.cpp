#include "core/model/decoder.h"
#include "core/model/experts.h"

namespace core::families {
namespace {

// DBRX: LayerNorm without biases, grouped queries, experts in every layer.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"d_model"}, Largest::hidden);
  d.layers = in.size({"n_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = in.size({"n_heads"}, Largest::heads);
  d.head_dim = read_head_dim(in, {"d_model"}, d.hidden, {"n_heads"}, d.heads);
  d.kv_heads = in.size({"attn_config.kv_n_heads"}, Largest::heads);
  in.require_multiple({"n_heads"}, d.heads, {"attn_config.kv_n_heads"}, d.kv_heads);
  d.max_positions = in.size_or({"max_seq_len"}, 0, Largest::positions);
  d.norm = {.rms = false, .weight = true, .bias = false};
  d.tied = in.flag({"tie_word_embeddings"}, false);
  read_dropouts(in, d, {"resid_pdrop"}, {"emb_pdrop"}, {"attn_config.attn_pdrop"});
  Experts experts;
  read_routed(in, experts, {"ffn_config.moe_num_experts"}, {"ffn_config.moe_top_k"}, {"ffn_config.ffn_hidden_size"});
  if (in.has({"ffn_config.ffn_act_fn.name"})) {
    experts.activation = in.activation({"ffn_config.ffn_act_fn.name"}, Activation::silu);
  }
  in.ignore({"attn_config.rope_theta", "attn_config.model_type", "ffn_config.model_type", "ffn_config.moe_jitter_eps",
             "ffn_config.moe_loss_weight", "ffn_config.moe_normalize_expert_weights", "ffn_config.uniform_expert_assignment"});
  const Layer layer = decoder_layer(d, "decoder-moe", attention_block(d, 0), moe_block(experts));
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in);
}

}  // namespace

extern const ModelFamily dbrx;
const ModelFamily dbrx = {
    .name = "dbrx",
    .architectures =
        [] {
          return std::vector<std::string_view>{"DbrxForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"dbrx"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
