#include "core/model/experts.h"
#include "core/model/decoder.h"

namespace core::families {
namespace {

constexpr std::int64_t most_modules = 64;

Decoder::QkNorm read_qk_norm(ConfigReader& in) {
  const bool on = in.flag({"use_qk_norm"}, false);
  const std::string type = in.text_or({"qk_norm_type"}, "per_layer");
  if (type != "per_layer" && type != "per_head") in.find({"qk_norm_type"})->complain("per_layer or per_head");
  if (!on) return Decoder::QkNorm::none;
  return type == "per_layer" ? Decoder::QkNorm::full_width : Decoder::QkNorm::per_head;
}

// MiniMax-M2: grouped queries with RMSNorm over all queries and all keys, experts in every layer, modules that predict
// further tokens.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 8});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qk_norm = read_qk_norm(in);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  Experts experts;
  experts.activation = d.activation;
  experts.selection_bias = in.flag({"use_routing_bias"}, false);
  read_routed(in, experts, {"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  experts.shared_ffn = in.count_or({"shared_intermediate_size"}, 0, Largest::ffn);
  const Layer layer = decoder_layer(d, "decoder-moe", attention_block(d, 0), moe_block(experts));
  const bool predicts = in.flag({"use_mtp"}, false);
  const std::int64_t modules = in.count_or({"num_mtp_modules"}, 0, most_modules);
  if (in.size_or({"mtp_transformer_layers"}, 1, Largest::layers) != 1) {
    in.find({"mtp_transformer_layers"})->complain("1");
  }
  std::vector<Layer> mtp(static_cast<std::size_t>(predicts ? modules : 0), mtp_module(d, layer));
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in, std::move(mtp));
}

}  // namespace

extern const ModelFamily minimax_m2;
const ModelFamily minimax_m2 = {
    .name = "minimax_m2",
    .architectures =
        [] {
          return std::vector<std::string_view>{"MiniMaxM2ForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"minimax_m2", "minimax"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
