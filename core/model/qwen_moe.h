#pragma once

#include <cstdint>
#include <vector>

#include "core/model/decoder.h"
#include "core/model/experts.h"

namespace core {

// The keys that Qwen's models with experts share: num_experts, num_experts_per_tok, moe_intermediate_size.
Experts read_qwen_experts(ConfigReader& in, Activation activation);

// Which layers have experts: each decoder_sparse_step-th, but for mlp_only_layers.
std::vector<bool> read_qwen_sparse(ConfigReader& in, std::int64_t layers);

// Layers of attention with the windows given, and experts or an mlp.
ModelSpec qwen_moe_spec(const Decoder& decoder,
                        const Experts& experts,
                        const std::vector<std::int64_t>& windows,
                        ConfigReader& in);

}  // namespace core
