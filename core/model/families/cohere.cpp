#include "core/model/decoder.h"

namespace core::families {
namespace {

// Command R and Aya: attention and gated MLP side by side after one LayerNorm without bias, tied
// embeddings.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.norm = {.rms = false, .weight = true, .bias = false};
  d.norms = Decoder::NormPlacement::shared;
  d.parallel_residual = true;
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.qk_norm = in.flag({"use_qk_norm"}, false) ? Decoder::QkNorm::full_width : Decoder::QkNorm::none;
  d.tied = in.flag({"tie_word_embeddings"}, true);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily cohere;
const ModelFamily cohere = {
    .name = "cohere",
    .architectures = [] { return std::vector<std::string_view>{"CohereForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"cohere"}; },
    .read = read,
};

}  // namespace core::families
