#include "core/model/decoder.h"
#include "core/model/experts.h"

namespace core::families {
namespace {

// Phi-3.5-MoE: LayerNorm, biases in attention and on the output layer, experts in every layer.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 8});
  d.norm = {.rms = false, .weight = true, .bias = true};
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.output_bias = in.flag({"lm_head_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.hidden_dropout = in.rate({"hidden_dropout"});
  const std::int64_t window = in.size_or({"sliding_window"}, 0, Largest::positions);
  Experts experts;
  experts.activation = d.activation;
  read_routed(in, experts, {"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  const Layer layer = decoder_layer(d, "decoder-moe", attention_block(d, window), moe_block(experts));
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in);
}

}  // namespace

extern const ModelFamily phimoe;
const ModelFamily phimoe = {
    .name = "phimoe",
    .architectures =
        [] {
          return std::vector<std::string_view>{"PhimoeForCausalLM", "PhiMoEForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"phimoe"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
