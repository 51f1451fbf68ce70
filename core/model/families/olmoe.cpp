#include "core/model/decoder.h"
#include "core/model/experts.h"

namespace core::families {
namespace {

// OLMoE: as Llama, with RMSNorm over all queries and all keys and experts in every layer.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.qk_norm = Decoder::QkNorm::full_width;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  Experts experts;
  experts.activation = d.activation;
  read_routed(in, experts, {"num_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  const Layer layer = decoder_layer(d, "decoder-moe", attention_block(d, 0), moe_block(experts));
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in);
}

}  // namespace

extern const ModelFamily olmoe;
const ModelFamily olmoe = {
    .name = "olmoe",
    .architectures =
        [] {
          return std::vector<std::string_view>{"OlmoeForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"olmoe"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
