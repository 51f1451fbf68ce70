#include "core/model/qwen_moe.h"

namespace core::families {
namespace {

// Qwen 3 with experts: as Qwen 3, with routed experts alone.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 4});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.qk_norm = Decoder::QkNorm::per_head;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  const Experts experts = read_qwen_experts(in, d.activation);
  const auto windows = read_max_window_layers(in, d.layers);
  return qwen_moe_spec(d, experts, windows, in);
}

}  // namespace

extern const ModelFamily qwen3_moe;
const ModelFamily qwen3_moe = {
    .name = "qwen3_moe",
    .architectures =
        [] {
          return std::vector<std::string_view>{"Qwen3MoeForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"qwen3_moe"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
