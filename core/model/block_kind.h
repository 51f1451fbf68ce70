#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/body.h"
#include "core/model/model.h"

namespace core {

// A kind of block: one file in core/model/blocks with its parameters, its operations over the axes b, s, h
// and tp, the tensors it saves for backward, and what it adds to the sums over a model. A function that is not given adds
// nothing, and forbids nothing.
struct BlockKind {
  std::string_view name;
  // Parameter tensors in order.
  std::vector<Tensor> (*tensors)(const Block& block, const ModelSpec& model);
  // Appends forward and backward operations and saved tensors. Backward operations are appended in the
  // order in which they run if this block ran alone; the caller reverses the order of the blocks.
  void (*lower)(const Block& block,
                const ModelSpec& model,
                const BodyContext& context,
                Body& body);
  // Matrix-multiply FLOPs of one token forward at a sequence length, attention in full (not halved where it is causal).
  double (*flops_per_token)(const Block& block, const ModelSpec& model, std::int64_t seq) = nullptr;
  // Elements that generation keeps of each token (keys and values, or what stands for them).
  double (*cache_per_token)(const Block& block) = nullptr;
  // Why tensor parallelism of this degree cannot divide the block ("24 heads do not divide by tp=16"), or nothing.
  std::optional<std::string> (*why_not_tensor)(const Block& block, std::int64_t tp) = nullptr;
};

namespace blocks {
std::span<const BlockKind* const> all();
}

const BlockKind& block_kind(std::string_view name);  // CORE_ASSERTs that it exists

// 2 FLOPs for each element of each matrix that a token is multiplied with: all of the block's, and of routed experts' the
// share top_k / experts.
double weight_flops(const Block& block, const ModelSpec& model);

// Elements of a block's tensors that one token uses: all, and of routed experts' the share top_k / experts.
std::int64_t active_elements(const Block& block, const Tensor& tensor);

// "24 heads do not divide by tp=16", or nothing.
std::optional<std::string> why_not_divided(std::int64_t size, std::string_view what, std::int64_t tp);

}  // namespace core
