#include "core/model/decoder.h"

namespace core::families {
namespace {

// GPT-2, and GPT-3 as Megatron-LM trains it: LayerNorm, biases everywhere, learned positions.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_gpt2_keys(in);
  read_gpt2_dropouts(in, d);
  d.activation = in.activation({"activation_function"}, Activation::gelu);
  d.tied = in.flag({"tie_word_embeddings"}, true);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily gpt2;
const ModelFamily gpt2 = {
    .name = "gpt2",
    .architectures = [] { return std::vector<std::string_view>{"GPT2LMHeadModel"}; },
    .model_types = [] { return std::vector<std::string_view>{"gpt2"}; },
    .read = read,
};

}  // namespace core::families
