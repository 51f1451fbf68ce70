#include "core/model/deepseek.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace core {
namespace {

constexpr std::int64_t most_mtp = 64;

void require_width(ConfigReader& in, const LatentAttention& a) {
  const std::int64_t width = a.heads * std::max(a.nope_dim + a.rope_dim, a.nope_dim + a.v_dim);
  if (width > Largest::projection || a.index_heads * a.index_dim > Largest::projection) {
    throw InputError(fmt::format("{}: {} heads of {}: expected a width of at most {} together",
                                 in.where(),
                                 a.heads,
                                 width / a.heads,
                                 Largest::projection));
  }
}

// The keys of DeepSeek's experts. Without n_routed_experts all layers are dense.
Experts read_deepseek_experts(ConfigReader& in, Activation activation, bool selection_bias) {
  Experts e;
  e.activation = activation;
  read_routed(in, e, {"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  e.shared_ffn = read_shared_ffn(in, {"n_shared_experts"}, e.ffn);
  const std::string method = in.text_or({"topk_method"}, selection_bias ? "noaux_tc" : "greedy");
  if (method != "greedy" && method != "group_limited_greedy" && method != "noaux_tc") {
    in.find({"topk_method"})->complain("greedy, group_limited_greedy or noaux_tc");
  }
  e.selection_bias = method == "noaux_tc";
  if (method == "greedy") {
    in.ignore({"n_group", "topk_group"});
  } else {
    read_groups(in, e, {"n_routed_experts"}, {"n_group"}, {"topk_group"});
  }
  return e;
}

}  // namespace

LatentAttention read_latent_attention(ConfigReader& in, std::int64_t heads) {
  LatentAttention a;
  a.heads = heads;
  a.q_rank = in.size_or({"q_lora_rank"}, 0, Largest::hidden);
  a.kv_rank = in.size({"kv_lora_rank"}, Largest::hidden);
  a.nope_dim = in.size({"qk_nope_head_dim"}, Largest::head_dim);
  a.rope_dim = in.size({"qk_rope_head_dim"}, Largest::head_dim);
  a.v_dim = in.size({"v_head_dim"}, Largest::head_dim);
  a.bias = in.flag({"attention_bias"}, false);
  // Each head has keys and values of its own, and these widths say what head_dim says elsewhere.
  in.ignore({"num_key_value_heads", "head_dim", "qk_head_dim"});
  require_width(in, a);
  return a;
}

void read_indexer(ConfigReader& in, LatentAttention& a) {
  a.index_heads = in.size({"index_n_heads"}, Largest::heads);
  a.index_dim = in.size({"index_head_dim"}, Largest::head_dim);
  a.index_top_k = in.size({"index_topk"}, Largest::positions);
  if (a.q_rank == 0) in.missing("q_lora_rank");
  require_width(in, a);
}

Block mla_block(const LatentAttention& a) {
  Block block{"mla",
              {{"heads", a.heads},
               {"q_rank", a.q_rank},
               {"kv_rank", a.kv_rank},
               {"nope_dim", a.nope_dim},
               {"rope_dim", a.rope_dim},
               {"v_dim", a.v_dim},
               {"bias", a.bias}}};
  if (a.index_top_k > 0) {
    block.shape.set("index_heads", a.index_heads);
    block.shape.set("index_dim", a.index_dim);
    block.shape.set("index_top_k", a.index_top_k);
  }
  return block;
}

SparseLayers read_sparse_layers(ConfigReader& in) {
  return {in.count_or({"first_k_dense_replace"}, 0, Largest::layers), in.size_or({"moe_layer_freq"}, 1, Largest::layers)};
}

Decoder read_sizes(ConfigReader& in) {
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = d.kv_heads = in.size({"num_attention_heads"}, Largest::heads);
  d.head_dim = 1;
  d.ffn = in.size({"intermediate_size"}, Largest::ffn);
  d.max_positions = in.size_or({"max_position_embeddings", "model_max_length"}, 0, Largest::positions);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.attention_dropout = in.rate({"attention_dropout"});
  return d;
}

std::vector<Layer> read_mtp(ConfigReader& in, const Decoder& d, const Layer& layer) {
  const std::int64_t modules = in.count_or({"num_nextn_predict_layers"}, 0, most_mtp);
  return std::vector<Layer>(static_cast<std::size_t>(modules), mtp_module(d, layer));
}

ModelSpec read_deepseek(const Document& config, const DeepseekVariant& variant) {
  ConfigReader in(config);
  Decoder d = read_sizes(in);
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  LatentAttention attention = read_latent_attention(in, d.heads);
  if (variant.indexer) read_indexer(in, attention);
  const Block mixer = mla_block(attention);
  const Layer dense = decoder_layer(d, "decoder-dense", mixer, mlp_block(d));
  if (!in.has({"n_routed_experts"})) {
    return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), dense), in,
                        read_mtp(in, d, dense));
  }
  const Experts experts = read_deepseek_experts(in, d.activation, variant.selection_bias);
  const Layer sparse = decoder_layer(d, "decoder-moe", mixer, moe_block(experts));
  const SparseLayers which = read_sparse_layers(in);
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < d.layers; ++i) layers.push_back(which.has(i) ? sparse : dense);
  return decoder_spec(d, layers, in, read_mtp(in, d, sparse));
}

}  // namespace core
