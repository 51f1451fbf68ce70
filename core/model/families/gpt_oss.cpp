#include "core/model/experts.h"
#include "core/model/decoder.h"

namespace core::families {
namespace {

// gpt-oss: grouped queries with biases and a sink a head, a window in every other layer, experts with biases in every layer.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 8, .head_dim = 64});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, true);
  d.attention_sinks = true;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  Experts experts;
  experts.activation = d.activation;
  experts.bias = experts.router_bias = true;
  read_routed(in, experts, {"num_local_experts"}, {"num_experts_per_tok", "experts_per_token"}, {"intermediate_size"});
  const std::int64_t window = in.size_or({"sliding_window"}, 0, Largest::positions);
  const auto windows = read_windows(in, d.layers, window, [](std::int64_t i) { return i % 2 == 0; });
  std::vector<Layer> layers;
  for (const std::int64_t w : windows) {
    layers.push_back(decoder_layer(d, w > 0 ? "decoder-local" : "decoder-global", attention_block(d, w),
                                   moe_block(experts)));
  }
  return decoder_spec(d, layers, in);
}

}  // namespace

extern const ModelFamily gpt_oss;
const ModelFamily gpt_oss = {
    .name = "gpt_oss",
    .architectures =
        [] {
          return std::vector<std::string_view>{"GptOssForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"gpt_oss"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
