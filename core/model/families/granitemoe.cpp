#include "core/model/decoder.h"
#include "core/model/experts.h"

namespace core::families {
namespace {

// Granite with experts: as Llama, with experts in every layer and, unless the file says otherwise, a tied table.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  Experts experts;
  experts.activation = d.activation;
  read_routed(in, experts, {"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  const Layer layer = decoder_layer(d, "decoder-moe", attention_block(d, 0), moe_block(experts));
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in);
}

}  // namespace

extern const ModelFamily granitemoe;
const ModelFamily granitemoe = {
    .name = "granitemoe",
    .architectures =
        [] {
          return std::vector<std::string_view>{"GraniteMoeForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"granitemoe"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
