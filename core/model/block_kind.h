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

// Which keys FLOPs of attention are counted over: all of a sequence for each query, or, causal, those that a query meets.
struct Span {
  std::int64_t seq = 0;
  bool causal = false;
  // Mean keys of a query, of at most `limit` of them where it is not 0 (a sliding window, chosen keys): full min(s, w); causal
  // w - w (w - 1) / 2 s, since the first w queries meet 1 .. w.
  double keys(std::int64_t limit = 0) const {
    const auto w = static_cast<double>(limit > 0 && limit < seq ? limit : seq);
    return causal ? w - w * (w - 1.0) / (2.0 * static_cast<double>(seq)) : w;
  }
};

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
  // Matrix-multiply FLOPs of one token forward, the mean over a sequence.
  double (*flops_per_token)(const Block& block, const ModelSpec& model, const Span& span) = nullptr;
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
