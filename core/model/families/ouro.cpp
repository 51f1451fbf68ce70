#include "core/model/decoder.h"

namespace core::families {
namespace {

constexpr std::int64_t most_loops = 1024;

// Ouro (arXiv 2510.25741): as Llama with norms around attention and MLP, run total_ut_steps times with the same weights. Its
// gate for leaving early, h + 1 parameters, is left out.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_shared_keys(in);
  d.norms = Decoder::NormPlacement::around;
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  const std::int64_t loops = in.size({"total_ut_steps"}, most_loops);
  d.windows = read_max_window_layers(in, d.layers);
  in.ignore({"early_exit_threshold", "early_exit_step"});
  ModelSpec model = decoder_spec(d, in);
  model.loops = loops;
  return model;
}

}  // namespace

extern const ModelFamily ouro;
const ModelFamily ouro = {
    .name = "ouro",
    .architectures =
        [] {
          return std::vector<std::string_view>{"OuroForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"ouro"};
        },
    .read = read,
};

}  // namespace core::families
