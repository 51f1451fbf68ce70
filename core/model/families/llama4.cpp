#include <algorithm>
#include <string>
#include <vector>

#include "core/model/decoder.h"
#include "core/model/experts.h"

namespace core::families {
namespace {

constexpr std::int64_t default_interval = 4;  // Llama4TextConfig: each fourth layer has no rotary positions

Experts read_experts(ConfigReader& in, Activation activation) {
  Experts e;
  e.activation = activation;
  read_routed(in, e, {"num_local_experts"}, {"num_experts_per_tok"}, {"intermediate_size"});
  e.shared_ffn = e.ffn;
  return e;
}

// Whether each layer has rotary positions, and with them chunks: no_rope_layers lists 1 where it does.
std::vector<bool> read_rope(ConfigReader& in, std::int64_t layers) {
  const auto listed = in.integers({"no_rope_layers"}, 1);
  const std::int64_t interval = in.size_or({"no_rope_layer_interval"}, default_interval, Largest::layers);
  std::vector<bool> rope;
  if (listed && !listed->empty()) {
    if (static_cast<std::int64_t>(listed->size()) != layers) {
      in.find({"no_rope_layers"})->complain("as many as num_hidden_layers = " + std::to_string(layers));
    }
    for (const std::int64_t one : *listed) rope.push_back(one == 1);
    return rope;
  }
  for (std::int64_t i = 0; i < layers; ++i) rope.push_back((i + 1) % interval != 0);
  return rope;
}

// Which layers have experts.
std::vector<bool> read_sparse(ConfigReader& in, std::int64_t layers) {
  const std::int64_t step = in.size_or({"interleave_moe_layer_step"}, 1, Largest::layers);
  std::vector<bool> sparse;
  for (std::int64_t i = 0; i < layers; ++i) sparse.push_back((i + 1) % step == 0);
  const auto listed = in.integers({"moe_layers"}, layers - 1);
  if (listed) {
    sparse.assign(static_cast<std::size_t>(layers), false);
    for (const std::int64_t i : *listed) sparse[static_cast<std::size_t>(i)] = true;
  }
  return sparse;
}

ModelSpec read_text(ConfigReader& in) {
  Decoder d = read_shared_keys(in, {.kv_heads = 8});
  d.activation = in.activation({"hidden_act"}, Activation::silu);
  d.qkv_bias = d.out_bias = in.flag({"attention_bias"}, false);
  d.tied = in.flag({"tie_word_embeddings"}, false);
  const bool normed = in.flag({"use_qk_norm"}, true);
  const Experts experts = read_experts(in, d.activation);
  d.ffn = in.size({"intermediate_size_mlp"}, Largest::ffn);
  const std::int64_t chunk = in.size_or({"attention_chunk_size"}, 0, Largest::positions);
  const std::vector<bool> rope = read_rope(in, d.layers), sparse = read_sparse(in, d.layers);
  in.ignore({"layer_types"});
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < rope.size(); ++i) {
    d.rope = rope[i];
    d.qk_norm = rope[i] && normed ? Decoder::QkNorm::without_weights : Decoder::QkNorm::none;
    Block attention = attention_block(d, 0);
    attention.shape.set("chunk", rope[i] ? chunk : 0);
    const std::string name = std::string(rope[i] ? "chunked" : "global") + (sparse[i] ? "-moe" : "-dense");
    layers.push_back(decoder_layer(d, name, attention, sparse[i] ? moe_block(experts) : mlp_block(d)));
  }
  return decoder_spec(d, layers, in);
}

// Llama 4, text: attention in chunks with rotary positions and, each fourth layer, over everything without; one routed and
// one shared expert a token.
ModelSpec read(const Document& config) {
  const Document* text = config.find("text_config");
  if (text == nullptr) {
    ConfigReader in(config);
    return read_text(in);
  }
  ConfigReader in(*text);
  in.warn("text_config: read alone; the vision tower is left out");
  return read_text(in);
}

}  // namespace

extern const ModelFamily llama4;
const ModelFamily llama4 = {
    .name = "llama4",
    .architectures =
        [] {
          return std::vector<std::string_view>{"Llama4ForConditionalGeneration", "Llama4ForCausalLM"};
        },
    .model_types =
        [] {
          return std::vector<std::string_view>{"llama4", "llama4_text"};
        },
    .read = read,
    .reads = ModelFamily::experts,
};

}  // namespace core::families
