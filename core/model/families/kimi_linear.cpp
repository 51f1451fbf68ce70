#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/model/deepseek.h"
#include "core/model/scan.h"

namespace core::families {
namespace {

constexpr std::string_view lists = "linear_attn_config.kda_layers and full_attn_layers to name each layer from 1 to ";

Block read_kda(ConfigReader& in) {
  const std::int64_t heads = in.size({"linear_attn_config.num_heads"}, Largest::heads);
  const std::int64_t dim = in.size({"linear_attn_config.head_dim"}, Largest::head_dim);
  if (heads * dim > Largest::projection) in.find({"linear_attn_config.head_dim"})->complain("a smaller width");
  return {"kda",
          {{"heads", heads},
           {"head_dim", dim},
           {"kernel", in.size({"linear_attn_config.short_conv_kernel_size"}, Largest::kernel)},
           {"chunk", scan_figures().kda_chunk}}};
}

// Whether each layer has full attention. The file counts layers from 1.
std::vector<bool> read_full(ConfigReader& in, std::int64_t layers) {
  std::vector<int> kinds(static_cast<std::size_t>(layers), 0);
  const auto mark = [&](Keys keys, int kind) {
    const auto numbers = in.integers(keys, layers);
    if (!numbers) in.missing(*keys.begin());
    for (const std::int64_t n : *numbers) {
      if (n == 0) in.find(keys)->complain("layers from 1");
      kinds[static_cast<std::size_t>(n - 1)] += kind;
    }
  };
  mark({"linear_attn_config.kda_layers"}, 1);
  mark({"linear_attn_config.full_attn_layers"}, 2);
  std::vector<bool> full;
  for (const int kind : kinds) {
    if (kind != 1 && kind != 2) {
      throw InputError(in.where() + ": expected " + std::string(lists) + std::to_string(layers) + " once");
    }
    full.push_back(kind == 2);
  }
  return full;
}

Experts read_experts(ConfigReader& in, Activation activation) {
  Experts e;
  e.activation = activation;
  e.selection_bias = true;
  read_routed(in, e, {"num_experts"}, {"num_experts_per_token", "num_experts_per_tok"}, {"moe_intermediate_size"});
  e.shared_ffn = read_shared_ffn(in, {"num_shared_experts"}, e.ffn);
  if (in.flag({"use_grouped_topk"}, true)) {
    read_groups(in, e, {"num_experts"}, {"num_expert_group"}, {"topk_group"});
  } else {
    in.ignore({"num_expert_group", "topk_group"});
  }
  return e;
}

// Kimi Linear: Kimi Delta Attention in most layers, latent attention without positions in the others, experts after the
// first dense layers.
ModelSpec read(const Document& config) {
  ConfigReader in(config);
  Decoder d = read_sizes(in);
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  in.ignore({"mla_use_nope"});
  const Block kda = read_kda(in), mla = mla_block(read_latent_attention(in, d.heads));
  const std::vector<bool> full = read_full(in, d.layers);
  const Block experts = moe_block(read_experts(in, d.activation));
  const SparseLayers which = read_sparse_layers(in);
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const bool attends = full[static_cast<std::size_t>(i)];
    const std::string name = std::string(attends ? "mla" : "kda") + (which.has(i) ? "-moe" : "-dense");
    layers.push_back(decoder_layer(d, name, attends ? mla : kda, which.has(i) ? experts : mlp_block(d)));
  }
  return decoder_spec(d, layers, in, read_mtp(in, d, layers.back()));
}

}  // namespace

extern const ModelFamily kimi_linear;
const ModelFamily kimi_linear = {
    .name = "kimi_linear",
    .architectures =
        [] {
          return std::vector<std::string_view>{"KimiLinearForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"kimi_linear"};
        },
    .read = read,
    .reads = ModelFamily::experts | ModelFamily::latent | ModelFamily::linear,
};

}  // namespace core::families
