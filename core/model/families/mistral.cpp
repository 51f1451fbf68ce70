#include "core/model/decoder.h"

namespace core::families {
namespace {

// Mistral: as Llama, with a sliding window in the first version.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in, {.kv_heads = 8});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  const std::int64_t window = in.size_or({"sliding_window"}, 0, Largest::positions);
  d.windows = read_windows(in, d.layers, window, [](std::int64_t) { return true; });
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily mistral;
const ModelFamily mistral = {
    .name = "mistral",
    .architectures = [] { return std::vector<std::string_view>{"MistralForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"mistral"}; },
    .read = read,
};

}  // namespace core::families
