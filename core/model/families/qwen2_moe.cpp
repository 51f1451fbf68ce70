#include "core/model/qwen_moe.h"

namespace core::families {
namespace {

// Qwen 1.5 and 2 with experts: as Qwen 2, with routed experts and a gated shared one.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 16});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = in.flag({"qkv_bias"}, true);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  Experts experts = read_qwen_experts(in, d.activation);
  experts.shared_ffn = in.size({"shared_expert_intermediate_size"}, Largest::ffn);
  experts.shared_gate = true;
  const auto windows = read_max_window_layers(in, d.layers);
  return qwen_moe_spec(d, experts, windows, in);
}

}  // namespace

extern const ModelFamily qwen2_moe;
const ModelFamily qwen2_moe = {
    .name = "qwen2_moe",
    .architectures =
        [] {
          return std::vector<std::string_view>{"Qwen2MoeForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"qwen2_moe"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
