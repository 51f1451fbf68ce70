#include "core/model/decoder.h"

namespace core::families {
namespace {

// GPT-J: attention and MLP side by side after one LayerNorm, rotary positions, a bias on the output
// layer.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_gpt2_keys(in);
  read_dropouts(in, d, {"resid_pdrop"}, {"embd_pdrop"}, {"attn_pdrop"});
  d.norms = Decoder::NormPlacement::shared;
  d.parallel_residual = true;
  d.rope = true;
  d.learned_positions = 0;
  d.qkv_bias = d.out_bias = false;
  d.activation = in.activation({"activation_function"}, Activation::gelu);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.output_bias = true;
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily gptj;
const ModelFamily gptj = {
    .name = "gptj",
    .architectures = [] { return std::vector<std::string_view>{"GPTJForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"gptj"}; },
    .read = read,
};

}  // namespace core::families
