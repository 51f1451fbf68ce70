#include "core/model/decoder.h"

namespace core::families {
namespace {

// GPTBigCode (SantaCoder, StarCoder 1): GPT-2 with one head of keys and values.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_gpt2_keys(in);
  read_gpt2_dropouts(in, d);
  d.kv_heads = in.flag({"multi_query"}, true) ? 1 : d.heads;
  d.activation = in.activation({"activation_function"}, Activation::gelu);
  d.tied = in.flag({"tie_word_embeddings"}, true);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily gpt_bigcode;
const ModelFamily gpt_bigcode = {
    .name = "gpt_bigcode",
    .architectures = [] { return std::vector<std::string_view>{"GPTBigCodeForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"gpt_bigcode"}; },
    .read = read,
};

}  // namespace core::families
