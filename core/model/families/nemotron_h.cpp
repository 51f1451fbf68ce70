#include <algorithm>
#include <string>
#include <vector>

#include "core/model/decoder.h"
#include "core/model/scan.h"

namespace core::families {
namespace {

Block read_mamba(ConfigReader& in) {
  const std::int64_t heads = in.size({"mamba_num_heads"}, Largest::heads);
  const std::int64_t head_dim = in.size({"mamba_head_dim"}, Largest::head_dim);
  const std::int64_t groups = in.size({"n_groups", "mamba_n_groups"}, Largest::heads);
  const std::int64_t state = in.size({"ssm_state_size"}, Largest::head_dim);
  in.require_multiple({"mamba_num_heads"}, heads, {"n_groups", "mamba_n_groups"}, groups);
  if (std::max(heads * head_dim, groups * state) > Largest::projection) {
    in.find({"mamba_head_dim"})->complain("a smaller width");
  }
  return {"mamba2",
          {{"heads", heads},
           {"head_dim", head_dim},
           {"groups", groups},
           {"state", state},
           {"kernel", in.size({"conv_kernel"}, Largest::kernel)},
           {"bias", in.flag({"mamba_proj_bias"}, false)},
           {"convolution_bias", in.flag({"use_conv_bias"}, true)},
           {"chunk", in.size_or({"chunk_size"}, scan_figures().mamba2_chunk, Largest::positions)}}};
}

Layer one_block(const Decoder& d, std::string name, Block block) {
  return {std::move(name), {norm_block(d), std::move(block)}, false};
}

// Nemotron-H: layers of one block each: M Mamba-2, * attention without positions, - an MLP with squared ReLU.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d;
  d.hidden = in.size({"hidden_size"}, Largest::hidden);
  d.layers = in.size({"num_hidden_layers"}, Largest::layers);
  d.vocab = in.size({"vocab_size"}, Largest::vocab);
  d.heads = in.size({"num_attention_heads"}, Largest::heads);
  d.kv_heads = in.size({"num_key_value_heads"}, Largest::heads);
  in.require_multiple({"num_attention_heads"}, d.heads, {"num_key_value_heads"}, d.kv_heads);
  d.head_dim = in.size({"attention_head_dim", "head_dim"}, Largest::head_dim);
  d.ffn = in.size({"intermediate_size"}, Largest::ffn);
  d.max_positions = in.size_or({"max_position_embeddings"}, 0, Largest::positions);
  d.rope = false;
  d.gated = false;
  d.activation = in.activation({"mlp_hidden_act"}, Activation::squared_relu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.up_bias = d.down_bias = in.flag({"mlp_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  d.hidden_dropout = in.rate({"hidden_dropout"});
  d.attention_dropout = in.rate({"attention_dropout"});
  // Written down beside the sizes that count: the inner width is mamba_num_heads x mamba_head_dim.
  in.ignore({"expand", "mamba_hidden_act"});
  const Layer mamba = one_block(d, "mamba", read_mamba(in));
  const Layer attention = one_block(d, "attention", attention_block(d, in.size_or({"sliding_window"}, 0, Largest::positions)));
  const Layer mlp = one_block(d, "mlp", mlp_block(d));
  const Document* pattern = in.find({"hybrid_override_pattern"});
  if (pattern == nullptr) in.missing("hybrid_override_pattern");
  if (static_cast<std::int64_t>(pattern->as_text().size()) != d.layers) {
    pattern->complain("as many letters as num_hidden_layers = " + std::to_string(d.layers));
  }
  std::vector<Layer> layers;
  for (const char letter : pattern->as_text()) {
    if (letter != 'M' && letter != '*' && letter != '-') pattern->complain("the letters M, * and -");
    layers.push_back(letter == 'M' ? mamba : letter == '*' ? attention : mlp);
  }
  return decoder_spec(d, layers, in);
}

}  // namespace

extern const ModelFamily nemotron_h;
const ModelFamily nemotron_h = {
    .name = "nemotron_h",
    .architectures =
        [] {
          return std::vector<std::string_view>{"NemotronHForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"nemotron_h"};
        },
    .read = read,
    .reads = ModelFamily::linear,
};

}  // namespace core::families
