#include "core/model/decoder.h"

namespace core::families {
namespace {

// Phi-3 and 4: as Llama (queries, keys and values in one weight, gate and up in another), with a
// window.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  const std::int64_t window = in.size_or({"sliding_window"}, 0, Largest::positions);
  d.windows = read_windows(in, d.layers, window, [](std::int64_t) { return true; });
  read_dropouts(in, d, {"resid_pdrop"}, {"embd_pdrop"}, {"attention_dropout"});
  return decoder_spec(d, in);
}

}  // namespace

extern const ModelFamily phi3;
const ModelFamily phi3 = {
    .name = "phi3",
    .architectures = [] { return std::vector<std::string_view>{"Phi3ForCausalLM"}; },
    .model_types = [] { return std::vector<std::string_view>{"phi3"}; },
    .read = read,
};

}  // namespace core::families
