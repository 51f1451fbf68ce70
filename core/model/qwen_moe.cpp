#include "core/model/qwen_moe.h"

#include <string>

namespace core {

Experts read_qwen_experts(ConfigReader& in, Activation activation) {
  Experts e;
  e.activation = activation;
  read_routed(in, e, {"num_experts"}, {"num_experts_per_tok"}, {"moe_intermediate_size"});
  return e;
}

std::vector<bool> read_qwen_sparse(ConfigReader& in, std::int64_t layers) {
  const std::int64_t step = in.size_or({"decoder_sparse_step"}, 1, Largest::layers);
  std::vector<bool> sparse;
  for (std::int64_t i = 0; i < layers; ++i) sparse.push_back((i + 1) % step == 0);
  if (const auto dense = in.integers({"mlp_only_layers"}, layers - 1)) {
    for (const std::int64_t i : *dense) sparse[static_cast<std::size_t>(i)] = false;
  }
  return sparse;
}

ModelSpec qwen_moe_spec(const Decoder& d,
                        const Experts& experts,
                        const std::vector<std::int64_t>& windows,
                        ConfigReader& in) {
  const std::vector<bool> sparse = read_qwen_sparse(in, d.layers);
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    const std::string name = std::string("decoder") + (windows[i] > 0 ? "-local" : "") + (sparse[i] ? "-moe" : "-dense");
    layers.push_back(decoder_layer(d, name, attention_block(d, windows[i]), sparse[i] ? moe_block(experts) : mlp_block(d)));
  }
  return decoder_spec(d, layers, in);
}

}  // namespace core
