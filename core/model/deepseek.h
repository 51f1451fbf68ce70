#pragma once

#include <cstdint>
#include <vector>

#include "core/model/decoder.h"
#include "core/model/experts.h"

namespace core {

// Latent attention as DeepSeek's configurations write it down.
struct LatentAttention {
  std::int64_t heads = 0;
  std::int64_t q_rank = 0;  // 0: queries are projected at once
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0, rope_dim = 0, v_dim = 0;
  bool bias = false;
  std::int64_t index_heads = 0, index_dim = 0, index_top_k = 0;  // of an indexer, 0 = none
};

// Reads kv_lora_rank, q_lora_rank (null: none), qk_nope_head_dim, qk_rope_head_dim, v_head_dim, attention_bias.
LatentAttention read_latent_attention(ConfigReader& in, std::int64_t heads);
// Reads index_n_heads, index_head_dim and index_topk.
void read_indexer(ConfigReader& in, LatentAttention& attention);
Block mla_block(const LatentAttention& attention);

// Which layers have experts: those from `first_dense` on whose number divides by `every`.
struct SparseLayers {
  std::int64_t first_dense = 0, every = 1;
  bool has(std::int64_t layer) const { return layer >= first_dense && layer % every == 0; }
};
// Reads first_k_dense_replace and moe_layer_freq.
SparseLayers read_sparse_layers(ConfigReader& in);

// What differs between the generations of DeepSeek's configurations.
struct DeepseekVariant {
  bool selection_bias = false;  // where topk_method does not say
  bool indexer = false;
};

// A model under DeepSeek's keys: latent attention, dense layers first, then experts with shared ones beside them,
// num_nextn_predict_layers modules that predict further tokens.
ModelSpec read_deepseek(const Document& config, const DeepseekVariant& variant);

// num_nextn_predict_layers modules, each with a layer such as `layer`.
std::vector<Layer> read_mtp(ConfigReader& in, const Decoder& decoder, const Layer& layer);

// The sizes that read_shared_keys reads, for a model without grouped queries or without attention of its own kind: hidden_size,
// num_hidden_layers, vocab_size, num_attention_heads, intermediate_size, max_position_embeddings, tie_word_embeddings.
Decoder read_sizes(ConfigReader& in);

}  // namespace core
