#include "core/model/experts.h"
#include "core/model/decoder.h"

namespace core::families {
namespace {

// Mixtral: as Mistral, with experts in every layer.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 8});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  const std::int64_t window = in.size_or({"sliding_window"}, 0, Largest::positions);
  Experts experts;
  experts.activation = d.activation;
  read_routed(in, experts, {"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  const Layer layer = decoder_layer(d, "decoder-moe", attention_block(d, window), moe_block(experts));
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in);
}

}  // namespace

extern const ModelFamily mixtral;
const ModelFamily mixtral = {
    .name = "mixtral",
    .architectures =
        [] {
          return std::vector<std::string_view>{"MixtralForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"mixtral"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
