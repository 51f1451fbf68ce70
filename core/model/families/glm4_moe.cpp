#include "core/model/deepseek.h"

namespace core::families {
namespace {

// GLM-4.5 and 4.6: grouped queries with biases on queries, keys and values and, in the large ones, RMSNorm on each head's
// queries and keys; dense layers first, then experts as in DeepSeek-V3.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 8});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = in.flag({"attention_bias"}, false);
  d.qk_norm = in.flag({"use_qk_norm"}, false) ? Decoder::QkNorm::per_head : Decoder::QkNorm::none;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  Experts experts;
  experts.activation = d.activation;
  experts.selection_bias = true;
  read_routed(in, experts, {"n_routed_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  experts.shared_ffn = read_shared_ffn(in, {"n_shared_experts"}, experts.ffn);
  read_groups(in, experts, {"n_routed_experts"}, {"n_group"}, {"topk_group"});
  const Layer dense = decoder_layer(d, "decoder-dense", attention_block(d, 0), mlp_block(d));
  const Layer sparse = decoder_layer(d, "decoder-moe", attention_block(d, 0), moe_block(experts));
  const SparseLayers which = read_sparse_layers(in);
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < d.layers; ++i) layers.push_back(which.has(i) ? sparse : dense);
  return decoder_spec(d, layers, in, read_mtp(in, d, sparse));
}

}  // namespace

extern const ModelFamily glm4_moe;
const ModelFamily glm4_moe = {
    .name = "glm4_moe",
    .architectures =
        [] {
          return std::vector<std::string_view>{"Glm4MoeForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"glm4_moe"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
