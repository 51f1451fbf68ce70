#include "core/model/decoder.h"

namespace core::families {
namespace {

// Qwen 2 and 2.5: as Llama, with biases on queries, keys and values.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 32});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = true;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.windows = read_max_window_layers(in, d.layers);
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily qwen2;
const ModelFamily qwen2 = {
    .name = "qwen2",
    .architectures = [] { return std::vector<std::string_view>{"Qwen2ForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"qwen2"}; },
    .read = read,
};

}  // namespace core::families
