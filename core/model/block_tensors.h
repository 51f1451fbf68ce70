#pragma once

#include <vector>

#include "core/model/model.h"

namespace core {

// Parameter tensors of each kind of block, in order. Weights of a linear layer are [in, out], so
// that Megatron's column-parallel layers divide columns and its row-parallel layers divide rows;
// tables, the output layer's included, are [vocab, dim] and divide rows. Queries, keys and values
// stand apart.

// weight [dim], bias [dim]
std::vector<Tensor> norm_tensors(const Block& block, const ModelSpec& model);
// q [hidden, heads x head_dim], k and v [hidden, kv_heads x head_dim], an output gate as q, their
// biases and norms, sinks [heads], out [heads x head_dim, hidden] and its bias
std::vector<Tensor> attention_tensors(const Block& block, const ModelSpec& model);
// gate (where gated) and up [hidden, ffn], down [ffn, hidden], biases
std::vector<Tensor> mlp_tensors(const Block& block, const ModelSpec& model);
// tokens [vocab, dim], positions [positions, hidden], project_in [dim, hidden] where dim is not
// hidden
std::vector<Tensor> embedding_tensors(const Block& block, const ModelSpec& model);
// project_out [hidden, dim] where dim is not hidden, weight [vocab, dim] unless tied, bias [vocab]
std::vector<Tensor> output_tensors(const Block& block, const ModelSpec& model);

}  // namespace core
