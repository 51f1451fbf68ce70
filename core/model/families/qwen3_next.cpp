#include <algorithm>
#include <string>
#include <vector>

#include "core/model/qwen_moe.h"
#include "core/model/scan.h"

namespace core::families {
namespace {

constexpr std::int64_t default_interval = 4;  // Qwen3NextConfig

Block read_gated_delta(ConfigReader& in) {
  const std::int64_t k_heads = in.size({"linear_num_key_heads"}, Largest::heads);
  const std::int64_t v_heads = in.size({"linear_num_value_heads"}, Largest::heads);
  const std::int64_t k_dim = in.size({"linear_key_head_dim"}, Largest::head_dim);
  const std::int64_t v_dim = in.size({"linear_value_head_dim"}, Largest::head_dim);
  in.require_multiple({"linear_num_value_heads"}, v_heads, {"linear_num_key_heads"}, k_heads);
  if (v_heads * std::max(k_dim, v_dim) > Largest::projection) {
    in.find({"linear_num_value_heads"})->complain("a smaller width of all heads");
  }
  return {"gated_delta",
          {{"k_heads", k_heads},
           {"v_heads", v_heads},
           {"k_dim", k_dim},
           {"v_dim", v_dim},
           {"kernel", in.size({"linear_conv_kernel_dim"}, Largest::kernel)},
           {"chunk", scan_figures().gated_delta_chunk}}};
}

// Whether each layer has full attention: as layer_types says, else each full_attention_interval-th.
std::vector<bool> read_full(ConfigReader& in, std::int64_t layers) {
  const std::int64_t interval = in.size_or({"full_attention_interval"}, default_interval, Largest::layers);
  std::vector<bool> full;
  const Document* types = in.find({"layer_types"});
  if (types == nullptr) {
    for (std::int64_t i = 0; i < layers; ++i) full.push_back((i + 1) % interval == 0);
    return full;
  }
  if (static_cast<std::int64_t>(types->as_list().size()) != layers) {
    types->complain("as many as num_hidden_layers = " + std::to_string(layers));
  }
  for (const Document& type : types->as_list()) {
    if (type.as_text() != "full_attention" && type.as_text() != "linear_attention") {
      type.complain("full_attention or linear_attention");
    }
    full.push_back(type.as_text() == "full_attention");
  }
  return full;
}

// Qwen3-Next: Gated DeltaNet in most layers, in the others attention with a gate on its output and RMSNorm on each head's
// queries and keys; routed experts and a gated shared one.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 2, .head_dim = 256});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.qk_norm = Decoder::QkNorm::per_head;
  d.attention_gate = true;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  Experts experts = read_qwen_experts(in, d.activation);
  experts.shared_ffn = in.size({"shared_expert_intermediate_size"}, Largest::ffn);
  experts.shared_gate = true;
  const Block linear = read_gated_delta(in), attention = attention_block(d, 0);
  const std::vector<bool> full = read_full(in, d.layers), sparse = read_qwen_sparse(in, d.layers);
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const std::string name = std::string(full[i] ? "attention" : "gated-delta") + (sparse[i] ? "-moe" : "-dense");
    layers.push_back(decoder_layer(d, name, full[i] ? attention : linear, sparse[i] ? moe_block(experts) : mlp_block(d)));
  }
  return decoder_spec(d, layers, in);
}

}  // namespace

extern const ModelFamily qwen3_next;
const ModelFamily qwen3_next = {
    .name = "qwen3_next",
    .architectures =
        [] {
          return std::vector<std::string_view>{"Qwen3NextForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"qwen3_next"};
        },
    .read = read,
    .reads = ModelFamily::experts | ModelFamily::linear,
};

}  // namespace core::families
