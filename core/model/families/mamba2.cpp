#include <algorithm>
#include <string>
#include <vector>

#include "core/model/decoder.h"
#include "core/model/scan.h"

namespace core::families {
namespace {

// Mamba-2: layers of one Mamba-2 block each, after an RMSNorm.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  const std::int64_t heads = in.size({"num_heads"}, Largest::heads), head_dim = in.size({"head_dim"}, Largest::head_dim);
  const std::int64_t groups = in.size({"n_groups"}, Largest::heads), state = in.size({"state_size"}, Largest::head_dim);
  in.require_multiple({"num_heads"}, heads, {"n_groups"}, groups);
  if (std::max(heads * head_dim, groups * state) > Largest::projection) in.find({"head_dim"})->complain("a smaller width");
  d.heads = d.kv_heads = heads;
  d.head_dim = 1;
  d.tied = in.flag({"tie_word_embeddings"}, false);
  // The inner width is num_heads x head_dim.
  in.ignore({"expand", "hidden_act", "time_step_rank", "rms_norm"});
  const Block mamba{"mamba2",
                    {{"heads", heads},
                     {"head_dim", head_dim},
                     {"groups", groups},
                     {"state", state},
                     {"kernel", in.size({"conv_kernel"}, Largest::kernel)},
                     {"bias", in.flag({"use_bias"}, false)},
                     {"convolution_bias", in.flag({"use_conv_bias"}, true)},
                     {"chunk", in.size_or({"chunk_size"}, scan_figures().mamba2_chunk, Largest::positions)}}};
  const Layer layer{"mamba", {norm_block(d), mamba}, false};
  return decoder_spec(d, std::vector<Layer>(static_cast<std::size_t>(d.layers), layer), in);
}

}  // namespace

extern const ModelFamily mamba2;
const ModelFamily mamba2 = {
    .name = "mamba2",
    .architectures =
        [] {
          return std::vector<std::string_view>{"Mamba2ForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"mamba2"};
        },
    .read = read,
    .reads = ModelFamily::linear,
};

}  // namespace core::families
